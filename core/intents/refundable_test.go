package intents_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
)

// An open order is told of once, when its source chain was read past its expiry and nobody has answered it; and again after a
// reorganization. How far the destination chain was read does not matter.
func TestWriteRefundableEvents(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	open := func(body string) *transfer.Intent {
		t.Helper()
		intent := pgtest.InsertTransfer(t, store, known, ann, body)
		for _, c := range []transfer.Command{
			{Trigger: transfer.Submit, Hash: "0xa"},
			{Trigger: transfer.Confirm, Hash: "0xa", Observed: &transfer.Transaction{Chain: intent.Source.Account.Chain}},
		} {
			if _, err := store.Intents.Transition(t.Context(), ann, intent.ID, c); err != nil {
				t.Fatal(err)
			}
		}
		pgtest.Exec(t, store, `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, log_index, seen_at)
			VALUES ($1, $2, 'eip155:11155111', sha256($2::uuid::text::bytea), 'open', 'mined', true, 1, sha256('1'), 0, now())`, ann, intent.ID)
		return intent
	}
	expire := func(intent *transfer.Intent, expires string) {
		t.Helper()
		pgtest.Exec(t, store, "UPDATE transfers SET expires = "+expires+" WHERE id = $1", intent.ID)
	}
	bridge, swap, answered, early, recent := open(pgtest.BridgeBody), open(pgtest.SwapBody), open(pgtest.BridgeBody), open(pgtest.BridgeBody), open(pgtest.BridgeBody)
	former, sent := open(pgtest.BridgeBody), pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	for _, intent := range []*transfer.Intent{bridge, swap, answered, former, sent} {
		expire(intent, "now() - interval '1 h'")
	}
	expire(early, "now() + interval '1 h'")
	expire(recent, "now() - interval '1 s'")
	pgtest.Exec(t, store, `UPDATE transfers SET order_scheme = 'erc7683-v1/OrderData' WHERE id = $1`, former.ID)
	pgtest.Exec(t, store, `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, log_index, seen_at)
		VALUES ($1, $2, 'eip155:11155111', sha256('claim'), 'finalise', 'mined', false, 1, sha256('1'), 0, now())`, ann, answered.ID)
	tell := func(want int) {
		t.Helper()
		if n, err := store.Intents.WriteRefundableEvents(t.Context()); n != want || err != nil {
			t.Errorf("%d told, %v; want %d", n, err, want)
		}
	}
	read := func(chain, until string) {
		t.Helper()
		pgtest.Exec(t, store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, head_number, confirmed_block, final_block, read_at, complete_until)
			VALUES ($1, 'core', 1, now(), 9, 8, 7, now(), `+until+`) ON CONFLICT (chain_id) DO UPDATE SET complete_until = excluded.complete_until`, chain)
	}
	tell(0) // no chain is followed
	read("eip155:84532", "now()")
	read("eip155:11155111", "NULL")
	tell(0)
	read("eip155:11155111", "now() - interval '61 minutes'")
	tell(0)
	read("eip155:11155111", "now() - interval '59 minutes'")
	tell(2)
	tell(0)
	for intent, want := range map[*transfer.Intent]bool{
		bridge: true, swap: true, answered: false, early: false, recent: false, former: false, sent: false,
	} {
		stored, err := store.Intents.Transfer(t.Context(), ann, intent.ID)
		if err != nil {
			t.Fatal(err)
		}
		if told := !stored.RefundableAt.IsZero(); told != want {
			t.Errorf("a %s %s, %s: told is %t", stored.Type, stored.Status, stored.Settlement.Expires, told)
		}
	}
	observed := &transfer.Transaction{Chain: bridge.Source.Account.Chain}
	for _, c := range []transfer.Command{
		{Trigger: transfer.Reorg, To: transfer.Submitted, Hash: "0xa"},
		{Trigger: transfer.Confirm, Hash: "0xa", Observed: observed},
	} {
		if _, err := store.Intents.Transition(t.Context(), ann, bridge.ID, c); err != nil {
			t.Fatal(err)
		}
	}
	tell(1)
	pgtest.AssignPositions(t, store)
	events, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	got := []string{}
	for _, e := range events {
		if e.Transfer.Summary.ID == bridge.ID {
			got = append(got, string(e.Type))
		}
	}
	want := []string{
		"transfer.created", "transfer.submitted", "transfer.confirmed", "transfer.refundable", "transfer.reorganized", "transfer.confirmed", "transfer.refundable",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
