package intents_test

import (
	"regexp"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

// Of the open orders, only those are read whose source chain is read past their expiry.
func TestTransfersRefundable_UsesIndex(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	pgtest.InsertTransfer(t, store, pgtest.LoadRegistry(t, store), uuid.New(), pgtest.BridgeBody)
	pgtest.Exec(t, plain, `INSERT INTO transfers SELECT made.* FROM transfers t, generate_series(1, 5000) AS n,
		jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256(n::text::bytea),
		'account_id', md5((n % 50)::text)::uuid, 'source_chain', 'eip155:' || n % 3 + 1, 'status', CASE WHEN n % 10 = 0 THEN 'confirmed' ELSE 'filled' END, 'hash', n::text,
		'expires', now() + (n + 3600) * interval '1 s')) AS made`)
	pgtest.Exec(t, plain, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, complete_until)
		SELECT 'eip155:' || n, 'core', 1, now(), now() FROM generate_series(1, 3) AS n`)
	pgtest.Exec(t, plain, `ANALYZE`)
	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	if n, err := store.Intents.WriteRefundableEvents(t.Context()); n != 0 || err != nil {
		t.Errorf("%d can be refunded, %v", n, err)
	}
	all := asked.Take()
	if len(all) != 1 {
		t.Fatalf("asked %q", all)
	}
	plan := pgtest.PlanOf(t, plain, all[0])
	if !regexp.MustCompile(`on transfers_unanswered .*\n\s*Index Cond: .*expires < watched_chains.complete_until`).MatchString(plan) {
		t.Errorf("no index for\n%s\n%s", all[0], plan)
	}
}
