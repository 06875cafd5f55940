package intents

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// Batch is intents that one request has created.
type Batch struct {
	ID          uuid.UUID
	AccountID   uuid.UUID
	KeyID       uuid.UUID
	Environment network.Environment
	// Count is how many intents the request had.
	Count     int
	CreatedAt time.Time
}

const (
	// batchPlaces is how many batches a core inserts at once: single intents keep the other connections.
	batchPlaces = 2
	// maxBatchesWaiting is how many batches of one account wait for its place.
	maxBatchesWaiting = 16
	// batchWait bounds the wait for a place.
	batchWait = time.Second
)

// insertBatch inserts a batch and its intents with their first events in one statement, so that all are there or none. It inserts nothing if
// the account has used the idempotency key for a batch before. Its last parameters are those of encodeBatch.
var insertBatch = func() string {
	parameter := func(n int) string { return fmt.Sprintf("$%d", len(labelledColumns)+n) }
	return insertStatement(labelledColumns, insertOptions{
		with: `batch AS (
			INSERT INTO batches (account_id, id, key_id, environment, idempotency_key, count, created_at)
			VALUES (` + parameter(1) + `, ` + parameter(2) + `, ` + parameter(3) + `, ` + parameter(4) + `, ` + parameter(5) + `, ` + parameter(6) + `, statement_timestamp())
			ON CONFLICT (account_id, environment, idempotency_key) DO NOTHING RETURNING id AS batch_id
		), `,
		from: "batch, ", column: ", batch_id", value: ", batch_id",
	})
}()

var insertBatchTypes = append(parameterTypes(labelledColumns), pgtype.UUIDOID, pgtype.UUIDOID, pgtype.UUIDOID, pgtype.TextOID, pgtype.TextOID, pgtype.Int4OID)

// encodeBatch is the parameters of insertBatch.
func encodeBatch(batch *Batch, idempotencyKey string, drafts []*transfer.Intent) [][]byte {
	rows := make([]*TransferRow, len(drafts))
	for n, draft := range drafts {
		row := newTransferRow(draft)
		rows[n] = &row
	}
	return append(encodeInsert(labelledColumns, rows),
		batch.AccountID[:], batch.ID[:], batch.KeyID[:], []byte(batch.Environment), []byte(idempotencyKey),
		binary.BigEndian.AppendUint32(nil, uint32(batch.Count))) //nolint:gosec // at most wire.MaxTransferBatch
}

// InsertBatch stores a batch and its intents, all durable when it returns, and sets their times. inserted is false, and nothing is written, if
// the account has used the idempotency key for a batch before in this environment. After an OutcomeUnknownError all may be stored; after any
// other error none is. It returns postgres.ErrTooManyWaiting, or postgres.ErrQueueFull, where it does not get its place in time.
func (s *Store) InsertBatch(ctx context.Context, batch *Batch, idempotencyKey string, drafts []*transfer.Intent) (inserted bool, err error) {
	release, err := s.acquireBatch(ctx, batch.AccountID)
	if err != nil {
		return false, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, s.db.ClientTimeout())
	defer cancel()
	span := s.db.StartQuery(ctx, "INSERT", "batches")
	created, err := onConnection(ctx, s.db, func(conn *pgx.Conn) (map[uuid.UUID]time.Time, error) {
		created, err := scanInserted(conn.PgConn().ExecParams(ctx, insertBatch, encodeBatch(batch, idempotencyKey, drafts), insertBatchTypes, allBinary, allBinary))
		return created, postgres.OutcomeOf(err)
	})
	postgres.EndQuery(span, err)
	if err != nil {
		err = fmt.Errorf("insert a batch of %d transfers: %w", batch.Count, err)
		if postgres.IsOutcomeUnknown(err) {
			err = &postgres.OutcomeUnknownError{Err: err, Repeatable: true}
		}
		return false, err
	}
	for _, draft := range drafts {
		draft.CreatedAt = created[draft.ID]
		draft.UpdatedAt, batch.CreatedAt = draft.CreatedAt, draft.CreatedAt
	}
	s.metrics.countTransitions(newIntent, transfer.Created, len(created))
	return len(created) > 0, nil
}

// acquireBatch waits for a place to insert a batch of an account.
func (s *Store) acquireBatch(ctx context.Context, accountID uuid.UUID) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, batchWait, postgres.ErrQueueFull)
	defer cancel()
	if release, err = s.batches.Acquire(ctx, accountID, maxBatchesWaiting); err != nil {
		return nil, fmt.Errorf("wait to insert a batch: %w", err)
	}
	return release, nil
}

type batchRow struct {
	bun.BaseModel `bun:"table:batches,alias:batches"`

	AccountID   uuid.UUID           `bun:"account_id,pk"`
	ID          uuid.UUID           `bun:"id,pk"`
	KeyID       uuid.UUID           `bun:"key_id"`
	Environment network.Environment `bun:"environment"`
	Count       int                 `bun:"count"`
	CreatedAt   time.Time           `bun:"created_at"`
}

// ErrBatchNotFound is returned for a batch that does not exist, or is of another account or environment.
var ErrBatchNotFound = errors.New("the account has no such batch")

// Batch reads one of an account's batches of an environment.
func (s *Store) Batch(ctx context.Context, accountID uuid.UUID, environment network.Environment, id uuid.UUID) (*Batch, error) {
	return s.batchWhere(ctx, accountID, environment, "id = ?", id)
}

// BatchByIdempotencyKey reads the batch of an idempotency key.
func (s *Store) BatchByIdempotencyKey(ctx context.Context, accountID uuid.UUID, environment network.Environment, key string) (*Batch, error) {
	return s.batchWhere(ctx, accountID, environment, "idempotency_key = ?", key)
}

func (s *Store) batchWhere(ctx context.Context, accountID uuid.UUID, environment network.Environment, where string, arg any) (*Batch, error) {
	var row batchRow
	err := s.db.NewSelect().Model(&row).Where("account_id = ? AND environment = ?", accountID, environment).Where(where, arg).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrBatchNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read a batch: %w", err)
	}
	return &Batch{
		ID: row.ID, AccountID: row.AccountID, KeyID: row.KeyID, Environment: row.Environment, Count: row.Count, CreatedAt: row.CreatedAt.UTC(),
	}, nil
}

// BatchTransfers reads the intents of a batch in the order of its request, without those that were removed since.
func (s *Store) BatchTransfers(ctx context.Context, accountID, batchID uuid.UUID) ([]*transfer.Intent, error) {
	var rows []TransferRow
	if err := s.db.NewSelect().Model(&rows).Where("account_id = ? AND batch_id = ?", accountID, batchID).Order("id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the transfers of batch %s: %w", batchID, err)
	}
	intents := make([]*transfer.Intent, len(rows))
	for n, row := range rows {
		var err error
		if intents[n], err = row.Intent(); err != nil {
			return nil, err
		}
	}
	return intents, nil
}
