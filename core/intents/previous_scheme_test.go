package intents_test

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

const previousScheme = "erc7683-v1/OrderData"

// insertPrevious inserts the intent of a request as version 0.1.0 does, whose orders have another scheme, and its first event.
func (s *service) insertPrevious(t *testing.T, by transfer.Caller, body, key string) uuid.UUID {
	t.Helper()
	i := pgtest.NewIntent(t, s.Registry.Current(), by.AccountID, body)
	pgtest.Exec(t, s.store, `WITH inserted AS (
			INSERT INTO transfers (account_id, id, key_id, environment, type, status, order_id, order_scheme, source_chain, source_account,
				source_token, source_amount, destination_chain, destination_account, destination_token, destination_amount, origin_domain,
				destination_domain, origin_settler, destination_settler, deadline, reference, idempotency_key, created_at, updated_at)
			VALUES ($1, $2, $3, 'test', $4, 'created', sha256($2::uuid::text::bytea), $5, 'eip155:11155111', $6, $7, 5, 'eip155:11155111', $8, $9, $10::numeric,
				11155111, 11155111, $11::text, $11::text, $12, $13, $14, statement_timestamp(), statement_timestamp())
			RETURNING id, account_id, status, created_at
		) INSERT INTO events (account_id, transfer_id, to_status, occurred_at, sequence) SELECT account_id, id, status, created_at, 1 FROM inserted`,
		i.AccountID, i.ID, i.KeyID, i.Type, previousScheme, i.Source.Account.Address, i.Source.Token.Address,
		i.Destination.Account.Address, i.Destination.Token.Address, i.Destination.Amount.String(), i.Settlement.InputSettler, i.Deadline,
		optional(i.Reference), optional(key))
	return i.ID
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// An intent that was recorded under the previous scheme stays readable and can come to its end. Its order is not shown, and only a plain
// transfer's transaction is handed out, as it needs no order.
func TestPreviousScheme(t *testing.T) {
	t.Parallel()
	for kind, body := range map[transfer.Type]string{transfer.Transfer: pgtest.TransferBody, transfer.Swap: pgtest.SwapBody} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s, ann := start(t), caller(network.Test)
			id := s.insertPrevious(t, ann, body, "order-1")
			found, err := s.Find(t.Context(), ann.AccountID, id.String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := found.Order(); !errors.Is(err, transfer.ErrScheme) || found.Settlement.Scheme != previousScheme {
				t.Errorf("its order: %v", err)
			}
			sendable := kind == transfer.Transfer
			check := func(what string, record *intents.Record, err error) {
				t.Helper()
				if err != nil || record.Order != nil || (record.Tx != nil) != sendable || record.Refundable {
					t.Errorf("%s: %+v, %v", what, record, err)
				}
				if diff := cmp.Diff(found, record.Intent, pgtest.Amounts); diff != "" {
					t.Errorf("%s (-found +got):\n%s", what, diff)
				}
			}
			record, err := s.Record(t.Context(), found)
			check("the record", record, err)
			record, replayed, err := s.Create(t.Context(), ann, pgtest.ParseRequest(t, body), "order-1")
			if check("the repeated request", record, err); !replayed {
				t.Error("the repeated request is not replayed")
			}
			if diff := cmp.Diff([]transfer.Summary{found.Summary()}, pgtest.List(t, s.store, ann.AccountID, intents.TransferFilter{})); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			preflight := map[bool]error{true: rpc.ErrNoProvider, false: transfer.ErrNotSendable}[sendable]
			if _, err := s.Preflight(t.Context(), found, transfer.AllSteps); !errors.Is(err, preflight) {
				t.Errorf("preflight: %v, want %v", err, preflight)
			}
			s.endPrevious(t, ann, body, found)
		})
	}
}

// endPrevious has intents of the previous scheme cancelled, reported, expired and refunded.
func (s *service) endPrevious(t *testing.T, by transfer.Caller, body string, found *transfer.Intent) {
	t.Helper()
	if reported, err := s.Report(t.Context(), access.OfOperator, found, common.Hash{1}); err != nil || reported.Status != transfer.Submitted {
		t.Errorf("report: %+v, %v", reported, err)
	}
	other, err := s.Find(t.Context(), by.AccountID, s.insertPrevious(t, by, body, "").String())
	if err != nil {
		t.Fatal(err)
	}
	if cancelled, err := s.Cancel(t.Context(), other); err != nil || cancelled.Status != transfer.Cancelled {
		t.Errorf("cancel: %+v, %v", cancelled, err)
	}
	s.insertPrevious(t, by, body, "")
	pgtest.Exec(t, s.store, `UPDATE transfers SET deadline = now() - interval '1 s'`)
	for _, want := range []int{1, 0} {
		if n, err := s.Store.ExpireTransfers(t.Context()); n != want || err != nil {
			t.Errorf("%d expired, %v; want %d", n, err, want)
		}
	}
	s.confirmAll(t)
	pgtest.Exec(t, s.store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, complete_until) VALUES ($1, 'core', 1, now(), now() + interval '1 day')`,
		found.Source.Account.Chain.String())
	if n, err := s.store.Intents.WriteRefundableEvents(t.Context()); n != 0 || err != nil {
		t.Errorf("%d can be refunded, %v", n, err)
	}
	opened, err := s.Find(t.Context(), by.AccountID, found.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Refund(t.Context(), opened); !errors.Is(err, transfer.ErrNotRefundable) {
		t.Errorf("refund: %v", err)
	}
	if record, err := s.Record(t.Context(), opened); err != nil || record.Refundable || len(record.Transactions) != 2 {
		t.Errorf("the record: %+v, %v", record, err)
	}
}
