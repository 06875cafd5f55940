package quotes_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// The best quote is first, as it is stored, and those who have none are named.
func TestService_Ask(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]http.HandlerFunc{
		"a": offer(time.Minute, 5, 3, 2), "b@other": offer(59*time.Minute, 5, 4), "c": fail(500, ""), "d@elsewhere": fail(500, ""),
	})
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range answer.Quotes {
		got = append(got, fmt.Sprint(q.Provider, " ", q.Destination.Amount, " ", q.Settlement.Deployment, " ", q.Fees[0].Kind, " ", q.Fees[0].Amount, " ", q.Fees[0].Included))
		read, err := s.Find(t.Context(), s.by.AccountID, network.Test, q.ID.String())
		if diff := cmp.Diff(q, read, pgtest.Amounts); diff != "" || err != nil {
			t.Errorf("%v (-answered +stored):\n%s", err, diff)
		}
	}
	if diff := cmp.Diff([]string{"b 4 other total 1 true", "a 3 test total 2 true", "a 2 test total 3 true"}, got); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]quote.Failure{{Provider: "c", Code: quote.ProviderUnavailable}}, answer.Failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if best := answer.Quotes[0]; best.Deadline.Sub(best.ExpiresAt) < transfer.ShortestLife { // the least lifetime of the order, whenever it is made
		t.Errorf("a quote until %s for an order until %s", best.ExpiresAt, best.Deadline)
	}
	named := request(t)
	named.Providers = []string{"a"}
	if answer, err = s.Ask(t.Context(), access.OfOperator, s.by, named); err != nil || len(answer.Quotes) != 2 || len(answer.Failures) != 0 {
		t.Errorf("a alone: %+v, %v", answer, err)
	}
	named.Providers = []string{"a", "nobody"}
	if _, err = s.Ask(t.Context(), access.OfOperator, s.by, named); err == nil || err.Error() != (&quotes.UnknownProviderError{Name: "nobody"}).Error() {
		t.Errorf("an unknown name: %v", err)
	}
	named.Providers = []string{"d"}
	if _, err = s.Ask(t.Context(), access.OfOperator, s.by, named); !errors.Is(err, quotes.ErrRouteUnsupported) {
		t.Errorf("a provider of a deployment that neither chain has: %v", err)
	}
	live := s.by
	live.Environment = network.Live
	if _, err := s.Ask(t.Context(), access.OfOperator, live, request(t)); err == nil {
		t.Error("a live key gets quotes on testnets")
	} else if _, ok := errors.AsType[*intents.EnvironmentError](err); !ok {
		t.Errorf("a live key: %v", err)
	}
	s.Providers = nil
	if _, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t)); !errors.Is(err, quotes.ErrNotConfigured) {
		t.Errorf("without providers: %v", err)
	}
}

// A quote holds for two blocks and 15 s when the client gets it, also where it waited for a slow provider.
func TestService_Ask_Holds(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]http.HandlerFunc{"a": offer(42*time.Second, 5, 4)})
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t))
	if err != nil || len(answer.Quotes) != 1 || answer.Quotes[0].ExpiresAt.Before(answer.Quotes[0].CreatedAt.Add(41*time.Second)) {
		t.Errorf("%+v, %v", answer, err)
	}
}

// One provider that answered properly makes the difference between no quote and no answer.
func TestService_Ask_Nobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		solvers    map[string]http.HandlerFunc
		answered   bool
		retryAfter time.Duration
	}{
		"nothing":               {map[string]http.HandlerFunc{"a": offer(time.Minute, 5), "b": fail(500, "")}, true, 0},
		"refused":               {map[string]http.HandlerFunc{"a": fail(400, ""), "b": fail(429, "1")}, true, 0},
		"too short":             {map[string]http.HandlerFunc{"a": offer(41*time.Second, 5, 4)}, true, 0},
		"zero":                  {map[string]http.HandlerFunc{"a": offer(time.Minute, 5, 0)}, true, 0},
		"another input":         {map[string]http.HandlerFunc{"a": offer(time.Minute, 6, 4)}, true, 0},
		"no answer":             {map[string]http.HandlerFunc{"a": fail(500, ""), "b": fail(503, "")}, false, 5 * time.Second},
		"the sooner of two":     {map[string]http.HandlerFunc{"a": fail(429, "30"), "b": fail(429, "20")}, false, 20 * time.Second},
		"one that says no time": {map[string]http.HandlerFunc{"a": fail(429, "30"), "b": fail(500, "")}, false, 5 * time.Second},
		"one that says a time":  {map[string]http.HandlerFunc{"a": fail(429, "2"), "b": fail(500, "")}, false, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, c.solvers)
			_, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t))
			none, answered := errors.AsType[*quotes.NoQuoteError](err)
			unavailable, silent := errors.AsType[*quotes.UnavailableError](err)
			switch {
			case answered != c.answered || silent == answered:
				t.Errorf("%v", err)
			case answered && len(none.Failures) != len(c.solvers):
				t.Errorf("%+v", none)
			case silent && (unavailable.RetryAfter != c.retryAfter || len(unavailable.Failures) != len(c.solvers)):
				t.Errorf("%+v", unavailable)
			}
		})
	}
}

// An intent has the quote's amounts, contracts and end, and an idempotency key finds it again whatever has become of the quote.
func TestService_Create(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]http.HandlerFunc{"b@other": offer(time.Minute, 5, 4)})
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t))
	if err != nil {
		t.Fatal(err)
	}
	q := answer.Quotes[0]
	asked := wire.TransferRequest{QuoteID: q.ID.String(), Reference: "inv-42"}
	record, replayed, err := s.Create(t.Context(), access.OfOperator, s.by, asked, "once")
	if err != nil || replayed {
		t.Fatal(replayed, err)
	}
	made := record.Intent
	if made.Destination.Amount.Cmp(q.Destination.Amount) != 0 || made.Source.Amount.Cmp(q.Source.Amount) != 0 || made.Settlement != q.Settlement ||
		!made.Deadline.Equal(q.Deadline) || made.Quote.ID != q.ID || !made.Quote.ExpiresAt.Equal(q.ExpiresAt) || made.Reference != "inv-42" {
		t.Errorf("%+v of %+v", made, q)
	}
	if record.Tx == nil {
		t.Error("no transaction before the quote's end")
	}
	if tx, err := made.Tx(transfer.Moment{Now: q.ExpiresAt, BlockTime: time.Second}); tx != nil || err != nil {
		t.Errorf("after the quote's end: %+v, %v", tx, err)
	}
	if _, _, err := s.Create(t.Context(), access.OfOperator, s.by, asked, "another"); err == nil || err.Error() != (&quotes.UsedError{TransferID: made.ID}).Error() {
		t.Errorf("without the key: %v", err)
	}
	for _, change := range []string{
		`SELECT 1`,
		`UPDATE quotes SET expires_at = clock_timestamp() - interval '1 min'`,
		`DELETE FROM tokens WHERE chain_id = 'eip155:84532'`,
		`DELETE FROM quotes`,
	} {
		pgtest.Exec(t, s.store, change)
		pgtest.Exec(t, s.store, `UPDATE registry_version SET version = version + 1`)
		pgtest.Must(t, s.Registry.Refresh(t.Context()))
		if again, replayed, err := s.Create(t.Context(), access.OfOperator, s.by, asked, "once"); err != nil || !replayed || again.Intent.ID != made.ID {
			t.Errorf("after %s: %+v, %t, %v", change, again, replayed, err)
		}
	}
	asked.Reference = "inv-43"
	if _, _, err := s.Create(t.Context(), access.OfOperator, s.by, asked, "once"); !errors.Is(err, postgres.ErrKeyReused) {
		t.Errorf("another request with the key: %v", err)
	}
	if _, _, err := s.Create(t.Context(), access.OfOperator, s.by, asked, ""); !errors.Is(err, quotes.ErrNotFound) {
		t.Errorf("a quote that is removed: %v", err)
	}
}

// A body beside a quote's id must be the quote's in every member.
func TestService_Create_Mismatch(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]http.HandlerFunc{"a": offer(time.Minute, 5, 4)})
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t))
	if err != nil {
		t.Fatal(err)
	}
	q := answer.Quotes[0]
	body := pgtest.ParseRequest(t, pgtest.BridgeBody)
	body.QuoteID, body.Deadline = q.ID.String(), q.Deadline
	for name, change := range map[string]func(*wire.TransferRequest){
		"source account":        func(r *wire.TransferRequest) { r.Source.Account.Address = pgtest.Bob },
		"source token":          func(r *wire.TransferRequest) { r.Source.Token.Address = pgtest.Bob },
		"source amount":         func(r *wire.TransferRequest) { r.Source.Amount = "6" },
		"destination account":   func(r *wire.TransferRequest) { r.Destination.Account.Address = pgtest.Alice },
		"destination token":     func(r *wire.TransferRequest) { r.Destination.Token.Address = pgtest.Bob },
		"destination amount":    func(r *wire.TransferRequest) { r.Destination.Amount = "3" },
		"no destination amount": func(r *wire.TransferRequest) { r.Destination.Amount = "" },
		"deadline":              func(r *wire.TransferRequest) { r.Deadline = r.Deadline.Add(time.Second) },
		"deadline alone": func(r *wire.TransferRequest) {
			*r = wire.TransferRequest{QuoteID: r.QuoteID, Deadline: r.Deadline.Add(-time.Second)}
		},
	} {
		changed := body
		change(&changed)
		if _, _, err := s.Create(t.Context(), access.OfOperator, s.by, changed, "once"); !errors.Is(err, quotes.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stranger := s.by
	stranger.AccountID = uuid.New()
	if _, _, err := s.Create(t.Context(), access.OfOperator, stranger, body, ""); !errors.Is(err, quotes.ErrNotFound) {
		t.Errorf("another account: %v", err)
	}
	if record, _, err := s.Create(t.Context(), access.OfOperator, s.by, body, "once"); err != nil || record.Intent.Quote.ID != q.ID {
		t.Errorf("the quote's own body: %+v, %v", record, err)
	}
}

// At most 100 quotes are answered and stored, the best ones.
func TestService_Ask_Most(t *testing.T) {
	t.Parallel()
	solvers := map[string]http.HandlerFunc{}
	for n := range 6 {
		var amounts []int
		for m := range 20 {
			amounts = append(amounts, 1+20*n+m)
		}
		solvers[fmt.Sprint("s", n)] = offer(time.Minute, 1000, amounts...)
	}
	s := start(t, solvers)
	ask := request(t)
	ask.Source.Amount = "1000"
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, ask)
	if err != nil || len(answer.Quotes) != 100 || answer.Quotes[0].Destination.Amount.String() != "120" || answer.Quotes[99].Destination.Amount.String() != "21" {
		t.Errorf("%d quotes, %v", len(answer.Quotes), err)
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM quotes`); n != 100 {
		t.Errorf("%d quotes are stored", n)
	}
}

// Requests with one idempotency key at once make one intent, which all get.
func TestService_Create_ConcurrentReplay(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]http.HandlerFunc{"a": offer(time.Minute, 5, 4)})
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t))
	if err != nil {
		t.Fatal(err)
	}
	asked := wire.TransferRequest{QuoteID: answer.Quotes[0].ID.String()}
	var made [8]uuid.UUID
	var first atomic.Int32
	var all sync.WaitGroup
	for n := range made {
		all.Go(func() {
			record, replayed, err := s.Create(t.Context(), access.OfOperator, s.by, asked, "once")
			if err != nil {
				t.Errorf("request %d: %v", n, err)
				return
			}
			if made[n] = record.Intent.ID; !replayed {
				first.Add(1)
			}
		})
	}
	all.Wait()
	if first.Load() != 1 || len(slices.Compact(made[:])) != 1 {
		t.Errorf("%d made an intent: %v", first.Load(), made)
	}
}

// A quote makes no intent of a token that has left the registry since.
func TestService_Create_TokenGone(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]http.HandlerFunc{"a": offer(time.Minute, 5, 4)})
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, request(t))
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, s.store, `DELETE FROM tokens WHERE chain_id = 'eip155:84532'`)
	pgtest.Exec(t, s.store, `UPDATE registry_version SET version = version + 1`)
	pgtest.Must(t, s.Registry.Refresh(t.Context()))
	_, _, err = s.Create(t.Context(), access.OfOperator, s.by, wire.TransferRequest{QuoteID: answer.Quotes[0].ID.String()}, "once")
	if rejection, ok := errors.AsType[*transfer.Rejection](err); !ok || rejection.Code != transfer.UnknownToken {
		t.Errorf("%v", err)
	}
}
