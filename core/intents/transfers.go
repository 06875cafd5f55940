package intents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// TransferRow is a row of transfers, which the stores of intents and of chains read.
type TransferRow struct {
	bun.BaseModel `bun:"table:transfers,alias:transfers"`
	Sides

	AccountID      uuid.UUID           `bun:"account_id,pk"`
	ID             uuid.UUID           `bun:"id,pk"`
	KeyID          uuid.UUID           `bun:"key_id"`
	Environment    network.Environment `bun:"environment"`
	Type           transfer.Type       `bun:"type"`
	Status         transfer.Status     `bun:"status"`
	OrderID        []byte              `bun:"order_id"`
	OrderScheme    string              `bun:"order_scheme"`
	Deployment     string              `bun:"deployment,nullzero"`
	InputSettler   string              `bun:"origin_settler"`
	OutputSettler  string              `bun:"destination_settler"`
	InputOracle    string              `bun:"input_oracle,nullzero"`
	OutputOracle   string              `bun:"output_oracle,nullzero"`
	Expires        time.Time           `bun:"expires,nullzero"`
	QuoteID        uuid.UUID           `bun:"quote_id,nullzero"`
	QuoteProvider  string              `bun:"quote_provider,nullzero"`
	QuoteExpiresAt time.Time           `bun:"quote_expires_at,nullzero"`
	Deadline       time.Time           `bun:"deadline"`
	Reference      string              `bun:"reference,nullzero"`
	Labels         wire.Labels         `bun:"labels,nullzero"`
	IdempotencyKey string              `bun:"idempotency_key,nullzero"`
	BatchID        uuid.UUID           `bun:"batch_id,nullzero"`
	Signing        wire.SigningScheme  `bun:"signing,nullzero"`
	SignedAt       time.Time           `bun:"signed_at,nullzero"`
	Submission
	Hash         string    `bun:"hash,nullzero"`
	Failure      string    `bun:"failure,nullzero"`
	CancelledAt  time.Time `bun:"cancelled_at,nullzero"`
	RefundableAt time.Time `bun:"refundable_at,nullzero"`
	Simulated    bool      `bun:"simulated"`
	CreatedAt    time.Time `bun:"created_at"`
	UpdatedAt    time.Time `bun:"updated_at"`
}

// InsertTransfer stores an intent and its first event, and sets the intent's times. inserted is false, and nothing is written, if the account
// has used the idempotency key before in the intent's environment.
func (tx Tx) InsertTransfer(ctx context.Context, intent *transfer.Intent, idempotencyKey string) (inserted bool, err error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return false, err
	}
	intent.CreatedAt, intent.UpdatedAt = now, now
	row := newTransferRow(intent)
	row.IdempotencyKey = idempotencyKey
	result, err := tx.db.NewInsert().Model(&row).
		On("CONFLICT (account_id, environment, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING").Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("insert transfer %s: %w", intent.ID, err)
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 0 {
		return false, err
	}
	return true, tx.insertEvents(ctx, []transfer.Event{{AccountID: intent.AccountID, TransferID: intent.ID, To: transfer.Created, At: now}})
}

// TransferByIdempotencyKey reads the intent of an idempotency key in its environment. It returns ErrTransferNotFound if there is
// none and ErrKeyReused if another request created it.
func (s *Store) TransferByIdempotencyKey(ctx context.Context, accountID uuid.UUID, idempotency Idempotency) (*transfer.Intent, error) {
	intent, err := readIntent(ctx, func(row *TransferRow) *bun.SelectQuery {
		return s.db.NewSelect().Model(row).
			Where("account_id = ? AND environment = ? AND idempotency_key = ?", accountID, idempotency.Environment, idempotency.Key)
	})
	if err != nil {
		return nil, err
	}
	if err := s.readFirst(ctx, accountID, intent); err != nil {
		return nil, err
	}
	if !intent.Answers(idempotency.Request, idempotency.Source) {
		return nil, postgres.ErrKeyReused
	}
	return intent, nil
}

// ErrTransferNotFound is returned for an intent that does not exist or is another account's.
var ErrTransferNotFound = errors.New("the account has no such transfer")

// Transfer reads one of an account's intents by its id.
func (s *Store) Transfer(ctx context.Context, accountID, id uuid.UUID) (*transfer.Intent, error) {
	return s.transferWhere(ctx, accountID, "id = ?", id)
}

// TransferByOrder reads one of an account's intents by its order id.
func (s *Store) TransferByOrder(ctx context.Context, accountID uuid.UUID, orderID [32]byte) (*transfer.Intent, error) {
	return s.transferWhere(ctx, accountID, "order_id = ?", orderID[:])
}

func (s *Store) transferWhere(ctx context.Context, accountID uuid.UUID, where string, arg any) (*transfer.Intent, error) {
	return readIntent(ctx, func(row *TransferRow) *bun.SelectQuery {
		return s.db.NewSelect().Model(row).Where("account_id = ?", accountID).Where(where, arg)
	})
}

func readIntent(ctx context.Context, query func(*TransferRow) *bun.SelectQuery) (*transfer.Intent, error) {
	var row TransferRow
	err := query(&row).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrTransferNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read a transfer: %w", err)
	}
	return row.Intent()
}

func newTransferRow(i *transfer.Intent) TransferRow {
	row := TransferRow{
		ID: i.ID, AccountID: i.AccountID, KeyID: i.KeyID, Environment: i.Environment, Type: i.Type, Status: i.Status,
		OrderID: i.OrderID[:], OrderScheme: i.Settlement.Scheme,
		Sides:      NewSides(i.Source, i.Destination),
		Deployment: i.Settlement.Deployment, InputSettler: i.Settlement.InputSettler, OutputSettler: i.Settlement.OutputSettler,
		InputOracle: i.Settlement.InputOracle, OutputOracle: i.Settlement.OutputOracle,
		QuoteID: i.Quote.ID, QuoteProvider: i.Quote.Provider, QuoteExpiresAt: i.Quote.ExpiresAt,
		Deadline: i.Deadline, Reference: i.Reference, Labels: i.Labels, BatchID: i.BatchID, Signing: i.Signing.Scheme, SignedAt: i.Signing.SignedAt,
		Submission: Submission{Submit: i.Signing.Submit},
		Hash:       i.Hash, Failure: i.Failure, CancelledAt: i.CancelledAt,
		RefundableAt: i.RefundableAt, Simulated: i.Simulated, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
	}
	if i.Type != transfer.Transfer { // a transfer expires with its deadline
		row.Expires = i.Settlement.Expires
	}
	return row
}

// Intent returns the intent of the row.
func (r TransferRow) Intent() (*transfer.Intent, error) {
	source, destination, err := r.Legs()
	if err != nil {
		return nil, fmt.Errorf("read transfer %s: %w", r.ID, err)
	}
	expires := r.Expires.UTC()
	if r.Type == transfer.Transfer {
		expires = r.Deadline.UTC()
	}
	intent := &transfer.Intent{
		ID: r.ID, AccountID: r.AccountID, KeyID: r.KeyID, Environment: r.Environment, Type: r.Type, Status: r.Status,
		OrderID: [32]byte(r.OrderID), Source: source, Destination: destination,
		Settlement: transfer.Settlement{
			Scheme: r.OrderScheme, Deployment: r.Deployment, InputSettler: r.InputSettler, OutputSettler: r.OutputSettler,
			InputOracle: r.InputOracle, OutputOracle: r.OutputOracle, Expires: expires,
		},
		Quote:    transfer.Quote{ID: r.QuoteID, Provider: r.QuoteProvider, ExpiresAt: r.QuoteExpiresAt.UTC()},
		Signing:  transfer.Signing{Scheme: r.Signing, SignedAt: r.SignedAt.UTC(), Submit: r.Submit},
		Deadline: r.Deadline.UTC(), Reference: r.Reference, Labels: r.Labels, BatchID: r.BatchID, Hash: r.Hash, Failure: r.Failure,
		CancelledAt: r.CancelledAt.UTC(), RefundableAt: r.RefundableAt.UTC(), Simulated: r.Simulated,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	if !r.SubmittedAt.IsZero() {
		intent.Signing.Submitted = &transfer.Submission{
			Provider: r.QuoteProvider, Status: r.SubmissionStatus, At: r.SubmittedAt.UTC(), Detail: r.SubmissionDetail,
		}
	}
	return intent, nil
}
