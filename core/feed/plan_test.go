package feed_test

import (
	"regexp"
	"testing"

	"intents.internal/core/pgtest"
)

var seqScan = regexp.MustCompile(`Seq Scan on (feed|events|transfers)\b`)

// No statement of the feed reads a table through that grows with use.
func TestFeed_UsesIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	intent := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	// Many accounts with many events, of which few are new.
	pgtest.Exec(t, plain, `INSERT INTO transfers SELECT made.* FROM transfers t, generate_series(1, 20000) AS n,
		jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256(n::text::bytea),
		'account_id', md5((n % 50)::text)::uuid)) AS made`)
	pgtest.Exec(t, plain, `INSERT INTO events (account_id, transfer_id, to_status, occurred_at, sequence) SELECT account_id, id, 'created', now(), 1 FROM transfers WHERE id <> $1`, intent.ID)
	for more := true; more; {
		round, err := store.Feed.AssignPositions(t.Context(), true, true)
		if err != nil {
			t.Fatal(err)
		}
		more = round.More
	}
	pgtest.Exec(t, plain, `ANALYZE`)
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	if _, err := store.Feed.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.AssignPositions(t, store)
	events, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if _, err := store.Feed.EventsAt(t.Context(), []int64{events[0].Position}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Feed.Find(t.Context(), pgtest.TestFeed(ann), events[0].ID); err != nil {
		t.Fatal(err)
	}
	pgtest.CancelTransfer(t, store, intent)
	if _, err := store.Intents.WriteRefundableEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Feed.Entries(t.Context(), events[0].Position, 10); err != nil {
		t.Fatal(err)
	}
	all := asked.Take()
	if len(all) < 8 {
		t.Errorf("only %d statements", len(all))
	}
	for _, statement := range all {
		if plan := pgtest.PlanOf(t, plain, statement); seqScan.MatchString(plan) {
			t.Errorf("no index for\n%s\n%s", statement, plan)
		}
	}
}
