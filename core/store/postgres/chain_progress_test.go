package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/caip"
)

// The progress of a chain can be read after its lease was given back.
func TestProgress_LeaseReleased(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	chain := caip.EIP155Chain(1)
	lease, ok, err := store.AcquireLease(t.Context(), chain, "one", time.Minute)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := store.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	all, err := store.AllProgress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[caip.ChainID]postgres.Progress{chain: {}}, all); diff != "" {
		t.Error(diff)
	}
}
