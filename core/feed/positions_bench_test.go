package feed_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

// BenchmarkAssignPositions is the ceiling of the feed: its rounds follow each other, in one backend of Postgres at a time, whatever the number of
// cores. An operation is one event of a backlog.
func BenchmarkAssignPositions(b *testing.B) {
	store := pgtest.New(b)
	one := pgtest.InsertTransfer(b, store, pgtest.LoadRegistry(b, store), uuid.New(), pgtest.TransferBody)
	pgtest.AssignPositions(b, store)
	pgtest.Exec(b, store, `INSERT INTO events OVERRIDING SYSTEM VALUE SELECT made.* FROM events e, generate_series(1, $1) n,
		jsonb_populate_record(e, jsonb_build_object('id', nextval('events_id_seq'), 'sequence', n + 1, 'xid', pg_current_xact_id(),
			'account_id', md5((n % 1000)::text)::uuid)) AS made WHERE e.transfer_id = $2`, b.N, one.ID.String())
	pgtest.Exec(b, store, `ANALYZE events`)
	began := pgtest.BackendCPU(b, store)
	b.ResetTimer()
	assigned := 0
	for assigned < b.N {
		round, err := store.Feed.AssignPositions(b.Context(), true, true)
		if err != nil || round.Events == 0 {
			b.Fatalf("after %d of %d events: %+v, %v", assigned, b.N, round, err)
		}
		assigned += round.Events
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	if used := pgtest.BackendCPU(b, store) - began; used > 0 {
		b.ReportMetric(used/float64(b.N), "CPU-µs/event")
	}
}
