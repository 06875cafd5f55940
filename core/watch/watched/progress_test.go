package watched_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// The progress of a chain can be read after its lease was given back.
func TestProgress_LeaseReleased(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	chain := caip.EIP155Chain(1)
	lease := pgtest.AcquireLease(t, store, chain, time.Minute)
	if err := store.Watched.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	all, err := store.Watched.AllProgress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[caip.ChainID]watched.Progress{chain: {}}, all); diff != "" {
		t.Error(diff)
	}
}
