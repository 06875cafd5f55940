package postgres_test

import (
	"regexp"
	"testing"

	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
)

var seqScan = regexp.MustCompile(`Seq Scan on (feed|events|transfers)\b`)

// No statement of the feed reads a table through that grows with use.
func TestFeed_UsesIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	known, ann := pgtest.LoadRegistry(t, store), insertAccount(t, store, "ann@example.com").ID
	intent := insertIntent(t, store, known, ann, transferBody)
	assignPositions(t, store)
	// Many accounts with many events, of which few are new.
	pgtest.Exec(t, plain, `INSERT INTO transfers SELECT (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256(n::text::bytea),
		'account_id', md5((n % 50)::text)::uuid))).* FROM transfers t, generate_series(1, 20000) AS n`)
	pgtest.Exec(t, plain, `INSERT INTO events (account_id, transfer_id, to_status, occurred_at, sequence) SELECT account_id, id, 'created', now(), 1 FROM transfers WHERE id <> $1`, intent.ID)
	for more := true; more; {
		round, err := store.AssignPositions(t.Context(), true, true)
		if err != nil {
			t.Fatal(err)
		}
		more = round.More
	}
	pgtest.Exec(t, plain, `ANALYZE`)
	insertIntent(t, store, known, ann, transferBody)
	var asked statements
	postgres.Watch(store, &asked)
	if _, err := store.FeedStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	assignPositions(t, store)
	events, _ := readFeed(t, store, testFeed(ann), 0)
	if _, err := store.EventsAt(t.Context(), []int64{events[0].Position}); err != nil {
		t.Fatal(err)
	}
	cancelTransfer(t, store, intent)
	if _, err := store.WriteRefundableEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.FeedEntries(t.Context(), events[0].Position, 10); err != nil {
		t.Fatal(err)
	}
	all := asked.take()
	if len(all) < 8 {
		t.Errorf("only %d statements", len(all))
	}
	for _, statement := range all {
		if plan := planOf(t, plain, statement); seqScan.MatchString(plan) {
			t.Errorf("no index for\n%s\n%s", statement, plan)
		}
	}
}
