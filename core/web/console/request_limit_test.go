package console_test

import (
	"net/http"
	"testing"

	"intents.internal/core/pgtest"
)

// Intents and quotes of the console are requests of the account that the session acts on: they are charged to its bucket under its own
// limit, whatever the limit of the person is.
func TestRequestLimit_ActingAccount(t *testing.T) {
	t.Parallel()
	s := startQuoting(t, offering(t, "first", "990000", ""))
	ann := s.signedUp(t, "ann@example.com")
	limit := func(name string, requests int) {
		pgtest.Exec(t, s.store, "UPDATE accounts SET limit_requests = $1, limit_period_seconds = 3600 WHERE name = $2", requests, name)
	}
	limit("Ann", 1)
	ann.share("Shop")
	limit("Shop", 4)
	shopKey, _ := ann.makeKey("mover")
	for n := range 6 {
		want := http.StatusSeeOther
		if n >= 2 {
			want = http.StatusTooManyRequests
		}
		if n < 2 {
			ann.post(newTransferPath+"/confirm", bridge(shopKey, "sourceAmount", "1.5")...).is(http.StatusOK, "Choose a quote")
		}
		record := ann.confirm(payment(shopKey))
		if got := ann.post(newTransferPath+"/record", record...).status; got != want {
			t.Errorf("request %d: status %d, want %d", n, got, want)
		}
	}
	ann.post(newTransferPath+"/confirm", bridge(shopKey, "sourceAmount", "1.5")...).is(http.StatusTooManyRequests)
	pgtest.Exec(t, s.store, "UPDATE sessions SET acting_account_id = NULL")
	ownKey, _ := ann.makeKey("own mover")
	first, second := ann.confirm(payment(ownKey)), ann.confirm(payment(ownKey))
	ann.post(newTransferPath+"/record", first...).is(http.StatusSeeOther)
	ann.post(newTransferPath+"/record", second...).is(http.StatusTooManyRequests)
}
