package intents_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// The record of a new intent, whose order was encoded for its id, is that of the intent as it is stored.
func TestRecord(t *testing.T) {
	t.Parallel()
	s, ann := start(t), caller(network.Test)
	for kind, body := range map[transfer.Type]string{
		transfer.Transfer: pgtest.TransferBody, transfer.Swap: pgtest.SwapBody, transfer.Bridge: pgtest.BridgeBody,
	} {
		created := s.createOf(t, ann, body)
		if i := created.Intent; i.Type != kind || created.Order.ID() != i.OrderID || created.Tx == nil {
			t.Errorf("%s: %+v", kind, created)
		}
		stored, err := s.Find(t.Context(), ann.AccountID, created.Intent.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		record, err := s.Record(t.Context(), stored)
		if err != nil {
			t.Fatal(err)
		}
		created.Transactions = []intents.ShownTransaction{}
		if diff := cmp.Diff(created, record, pgtest.Amounts, cmp.AllowUnexported(transfer.Order{})); diff != "" {
			t.Errorf("%s (-created +stored):\n%s", kind, diff)
		}
	}
}

// The transaction of an order is handed out until two blocks of its source chain before the deadline.
func TestRecord_BlockTime(t *testing.T) {
	t.Parallel()
	s, ann := start(t), caller(network.Test)
	swap, sent := s.createOf(t, ann, pgtest.SwapBody).Intent, s.createOf(t, ann, pgtest.TransferBody).Intent
	for _, c := range []struct {
		name, statement string
		sendable        bool
	}{
		{"a second", `UPDATE chains SET block_time_ms = 1000`, true},
		{"20 seconds", `UPDATE chains SET block_time_ms = 20000`, false},
		{"a chain that has left the registry, 12 seconds", `DELETE FROM chains WHERE id = 'eip155:11155111'`, false},
	} {
		if !c.sendable {
			pgtest.Exec(t, s.store, `DELETE FROM tokens`)
		}
		pgtest.Exec(t, s.store, c.statement)
		pgtest.Must(t, s.Registry.Refresh(t.Context()))
		pgtest.Exec(t, s.store, `UPDATE transfers SET deadline = now() + interval '22 s'`)
		for made, want := range map[*transfer.Intent]bool{swap: c.sendable, sent: true} {
			stored, err := s.Find(t.Context(), ann.AccountID, made.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			if record, err := s.Record(t.Context(), stored); err != nil || (record.Tx != nil) != want {
				t.Errorf("%s: the transaction of a %s is %+v, %v", c.name, made.Type, record.Tx, err)
			}
			preflight := map[bool]error{true: rpc.ErrNoProvider, false: transfer.ErrNotSendable}[want]
			if _, err := s.Preflight(t.Context(), stored, transfer.AllSteps); !errors.Is(err, preflight) {
				t.Errorf("%s: preflight of a %s: %v, want %v", c.name, made.Type, err, preflight)
			}
		}
	}
}

// No transaction is handed out while one of the intent stands in a block, however deep, nor at a deployment that an import has removed.
func TestRecord_Unsendable(t *testing.T) {
	t.Parallel()
	s, ann := start(t), caller(network.Test)
	made := []*transfer.Intent{
		s.createOf(t, ann, pgtest.SwapBody).Intent, s.createOf(t, ann, pgtest.BridgeBody).Intent, s.createOf(t, ann, pgtest.TransferBody).Intent,
	}
	sendable := func(name string, want func(*transfer.Intent) bool) {
		t.Helper()
		for _, i := range made {
			stored, err := s.Find(t.Context(), ann.AccountID, i.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			if record, err := s.Record(t.Context(), stored); err != nil || (record.Tx != nil) != want(i) {
				t.Errorf("%s: the transaction of a %s is %+v, %v", name, i.Type, record.Tx, err)
			}
			preflight := map[bool]error{true: rpc.ErrNoProvider, false: transfer.ErrNotSendable}[want(i)]
			if _, err := s.Preflight(t.Context(), stored, transfer.AllSteps); !errors.Is(err, preflight) {
				t.Errorf("%s: preflight of a %s: %v, want %v", name, i.Type, err, preflight)
			}
		}
	}
	always, never := func(*transfer.Intent) bool { return true }, func(*transfer.Intent) bool { return false }
	sendable("new", always)
	for _, change := range []string{
		`settlements = '[]'`,
		`settlements = (SELECT coalesce(jsonb_agg(s || '{"inputSettler": "0x00000000000000000000000000000000000000bB", "outputSettler": "0x00000000000000000000000000000000000000bB"}'), '[]') FROM jsonb_array_elements(settlements) s)`,
	} {
		pgtest.Exec(t, s.store, `CREATE TABLE before AS SELECT id, settlements FROM chains`)
		pgtest.Exec(t, s.store, `UPDATE chains SET `+change)
		pgtest.Must(t, s.Registry.Refresh(t.Context()))
		sendable(change, func(i *transfer.Intent) bool { return i.Type == transfer.Transfer })
		pgtest.Exec(t, s.store, `UPDATE chains SET settlements = before.settlements FROM before WHERE before.id = chains.id`)
		pgtest.Exec(t, s.store, `DROP TABLE before`)
		pgtest.Must(t, s.Registry.Refresh(t.Context()))
		sendable("imported again", always)
	}
	s.confirmAll(t)
	pgtest.Exec(t, s.store, `UPDATE transactions SET confirmed_at = NULL`)
	pgtest.Exec(t, s.store, `UPDATE transfers SET status = 'submitted'`)
	sendable("in a block", never)
	pgtest.Exec(t, s.store, `UPDATE transactions SET state = 'reverted', log_index = NULL`)
	sendable("reverted in a block", always)
}

// The status of an intent whose quote has ended before it was sent is not what is wrong with it.
func TestPreflight_QuoteEnded(t *testing.T) {
	t.Parallel()
	s, ann := start(t), caller(network.Test)
	made := s.createOf(t, ann, pgtest.SwapBody).Intent
	pgtest.Exec(t, s.store, `UPDATE transfers SET quote_id = gen_random_uuid(), quote_provider = 'solver', quote_expires_at = now() - interval '1 s'`)
	for status, want := range map[transfer.Status]error{
		transfer.Created: transfer.ErrQuoteEnded, transfer.Submitted: transfer.ErrNotSendable, transfer.Cancelled: transfer.ErrNotSendable,
	} {
		pgtest.Exec(t, s.store, `UPDATE transfers SET status = '`+string(status)+`', hash = CASE '`+string(status)+`' WHEN 'submitted' THEN '0x' || repeat('1', 64) END`)
		stored, err := s.Find(t.Context(), ann.AccountID, made.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Preflight(t.Context(), stored, transfer.AllSteps); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", status, err, want)
		}
	}
}

// An intent that is cancelled can be sent no more. Without nodes nothing can be simulated.
func TestPreflight(t *testing.T) {
	t.Parallel()
	s := start(t)
	made := s.create(t, caller(network.Test))
	if _, err := s.Preflight(t.Context(), made, transfer.AllSteps); !errors.Is(err, rpc.ErrNoProvider) || s.CanPreflight(made.Source.Account.Chain) {
		t.Errorf("without nodes: %v", err)
	}
	cancelled, err := s.Cancel(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Preflight(t.Context(), cancelled, transfer.AllSteps); !errors.Is(err, transfer.ErrNotSendable) {
		t.Errorf("a cancelled intent: %v", err)
	}
	if record, err := s.Record(t.Context(), cancelled); err != nil || record.Tx != nil || record.Confirmations != nil || len(record.Transactions) != 0 {
		t.Errorf("its record: %+v, %v", record, err)
	}
}

// confirmAll confirms all intents, each with a transaction of its own.
func (s *service) confirmAll(t *testing.T) {
	t.Helper()
	pgtest.Exec(t, s.store, `INSERT INTO transactions
			(account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, log_index, confirmed_at, seen_at)
		SELECT account_id, id, source_chain, sha256(id::text::bytea), CASE type WHEN 'transfer' THEN 'send' ELSE 'open' END, 'mined', true, 1,
			sha256('1'), 0, now(), now() FROM transfers`)
	pgtest.Exec(t, s.store, `UPDATE transfers SET status = 'confirmed', hash = '0x' || encode(sha256(id::text::bytea), 'hex')`)
}

// The chain's nodes are asked about a refund once the source chain was read past the order's expiry.
func TestRefund(t *testing.T) {
	t.Parallel()
	s, ann := start(t), caller(network.Test)
	bridge, sent := s.createOf(t, ann, pgtest.BridgeBody).Intent, s.createOf(t, ann, pgtest.TransferBody).Intent
	s.confirmAll(t)
	pgtest.Exec(t, s.store, `UPDATE transfers SET deadline = now() - interval '2 h'`)
	pgtest.Exec(t, s.store, `UPDATE transfers SET expires = now() - interval '1 h' WHERE type = 'bridge'`)
	for _, c := range []struct {
		source, destination string // read until
		refundable          bool
	}{
		{"NULL", "now()", false},
		{"now() - interval '61 minutes'", "now()", false},
		{"now() - interval '59 minutes'", "NULL", true},
	} {
		for chain, until := range map[string]string{bridge.Source.Account.Chain.String(): c.source, bridge.Destination.Account.Chain.String(): c.destination} {
			pgtest.Exec(t, s.store, fmt.Sprintf(`INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, complete_until)
				VALUES ('%s', 'core', 1, now(), %s) ON CONFLICT (chain_id) DO UPDATE SET complete_until = excluded.complete_until`, chain, until))
		}
		for made, want := range map[*transfer.Intent]bool{bridge: c.refundable, sent: false} {
			stored, err := s.Find(t.Context(), ann.AccountID, made.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			if record, err := s.Record(t.Context(), stored); err != nil || record.Refundable != want {
				t.Errorf("%+v: the record of a %s: %+v, %v", c, made.Type, record, err)
			}
			refund := map[bool]error{true: rpc.ErrNoProvider, false: transfer.ErrNotRefundable}[want]
			if _, err := s.Refund(t.Context(), stored); !errors.Is(err, refund) {
				t.Errorf("%+v: refund of a %s: %v, want %v", c, made.Type, err, refund)
			}
		}
	}
}
