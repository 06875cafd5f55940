package pgtest

import (
	"testing"
	"time"

	"intents.internal/core/rooms"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// AcquireLease takes the lease of a chain that nobody holds.
func AcquireLease(tb testing.TB, store *rooms.Rooms, chain caip.ChainID, ttl time.Duration) watched.Lease {
	tb.Helper()
	leases, err := store.Watched.AcquireLeases(tb.Context(), []caip.ChainID{chain}, nil, "test", ttl)
	if err != nil || len(leases) == 0 {
		tb.Fatalf("acquire the lease of %s: %d leases, %v", chain, len(leases), err)
	}
	return leases[0]
}
