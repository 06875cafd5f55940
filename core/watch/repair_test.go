package watch_test

import (
	"testing"
	"time"

	"intents.internal/core/postgres/pgtest"
)

// An order that nobody fills is compared with its settlers less and less often, and in the end no more.
func TestRepair_BacksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, confirmations)
	wait := func(age string) time.Duration {
		t.Helper()
		pgtest.Exec(t, w.store, "UPDATE transactions SET seen_at = now() - $1::interval", age)
		pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now() - $1::interval", age)
		w.due()
		w.tick(sepolia)
		return time.Duration(pgtest.LookUp[float64](t, w.store, "SELECT coalesce(extract(epoch FROM max(due_at) - now()), 0)::float8 FROM transactions") * float64(time.Second))
	}
	for age, want := range map[string]time.Duration{"1 hour": time.Hour, "8 days": 24 * time.Hour, "31 days": 0} {
		if got := wait(age); (got - want).Abs() > 10*time.Minute {
			t.Errorf("after %s it is compared again in %s, want %s", age, got, want)
		}
		pgtest.Exec(t, w.store, "UPDATE transactions SET due_at = now()")
	}
}
