package feed_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/metricstest"
)

// An event without a position counts with its age, whoever holds the feed.
func TestReadFeedLag(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	patient := pgtest.Patient()
	patient.Metrics = registry
	store := pgtest.OpenWith(t, pgtest.Database(t), patient)
	lag := func() float64 {
		t.Helper()
		pgtest.Must(t, store.Feed.ReadLag(t.Context()))
		return metricstest.Values(t, registry)["intents_core_feed_backlog_age_seconds"]
	}
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	if got := lag(); got != 0 {
		t.Errorf("every event has its position, and the oldest waits for %g s", got)
	}
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.Exec(t, store, `UPDATE events SET occurred_at = now() - interval '90 s'`)
	holder := pgtest.Lock(t, store, `SELECT last_position FROM feed_state FOR UPDATE`)
	if round, err := store.Feed.AssignPositions(t.Context(), false, false); err != nil || !round.Skipped {
		t.Fatalf("while another has the feed: %+v, %v", round, err)
	}
	if got := lag(); got < 90 || got > 300 {
		t.Errorf("an event of 90 s waits, and the oldest for %g s", got)
	}
	pgtest.Must(t, holder.Rollback())
	pgtest.AssignPositions(t, store)
	if got := lag(); got != 0 {
		t.Errorf("nothing waits any more, and the oldest for %g s", got)
	}
}
