package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// A client is told to try again only where that records nothing twice: if the connection to the database is lost during COMMIT, an
// intent without an Idempotency-Key may be there, as it is here.
func TestCreateTransfer_OutcomeUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header  []string
		message string
		retry   []string
	}{
		"without a key": {
			message: "The database did not confirm the write, which may have been carried out. Look for it before you repeat it, a transfer in the list by its reference; " +
				"repeat a write with the same Idempotency-Key only.",
		},
		"with a key": {
			header:  []string{"Idempotency-Key", "order-1"},
			message: "The database did not confirm the write, which may have been carried out. Repeat it with the same Idempotency-Key, which carries it out at most once.",
			retry:   []string{"Retry-After", "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			direct, gate := pgtest.Open(t, url), pgtest.NewGate(t, url)
			s := startOn(t, pgtest.Open(t, gate.URL))
			block := pgtest.BlockCommits(t, direct, "transfers")
			caller := append(webtest.Keyed(uuid.New(), "test"), c.header...)
			answered := make(chan webtest.Answer, 1)
			go func() { answered <- s.Call(t, "POST", "/v2/transfers", webtest.TransferBody, caller...) }()
			block.Await(t, 1)
			gate.Shut()
			webtest.Same(t, name, webtest.Refused(t, 503, "OUTCOME_UNKNOWN", c.message, c.retry...), <-answered)
			block.Release(t) // before pgx can send a request to cancel
			gate.Heal()
			if n := pgtest.LookUp[int](t, direct, "SELECT count(*) FROM transfers"); n != 1 {
				t.Errorf("%d intents are stored, want 1", n)
			}
			if got := s.Call(t, "POST", "/v2/transfers", webtest.TransferBody, caller...); got.Status != 201 {
				t.Errorf("repeated: %+v", got)
			}
			want := 1
			if c.header == nil {
				want = 2 // which is why it is not told to
			}
			if n := pgtest.LookUp[int](t, direct, "SELECT count(*) FROM transfers"); n != want {
				t.Errorf("%d intents after it was repeated, want %d", n, want)
			}
		})
	}
}
