package watched_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// Leases are renewed in one statement, which one that is lost and one whose row is locked do not hold up.
func TestStore_RenewLeases(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	var leases []watched.Lease
	for n := range uint64(4) {
		leases = append(leases, pgtest.AcquireLease(t, store, caip.EIP155Chain(n+1), time.Millisecond))
	}
	pgtest.Exec(t, store, "UPDATE watched_chains SET epoch = 2 WHERE chain_id = 'eip155:2'")
	pgtest.Lock(t, store, "SELECT FROM watched_chains WHERE chain_id = 'eip155:3' FOR UPDATE")
	renewal, err := store.Watched.RenewLeases(t.Context(), leases, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(postgres.Renewal[watched.Lease]{Lost: leases[1:2], Locked: leases[2:3]}, renewal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, store, "SELECT count(*) FROM watched_chains WHERE lease_until > now() + interval '30 minutes' AND chain_id IN ('eip155:1', 'eip155:4')"); n != 2 {
		t.Errorf("%d of 2 are renewed", n)
	}
	if renewal, err := store.Watched.RenewLeases(t.Context(), nil, time.Hour); len(renewal.Lost)+len(renewal.Locked) > 0 || err != nil {
		t.Errorf("none: %+v, %v", renewal, err)
	}
}
