package chains

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
)

const (
	// disputedAtOnce is how long a transaction that other providers contradict is compared at each poll: most only lag.
	disputedAtOnce = time.Minute
	// compareEvery is the longest time between two comparisons of a transaction.
	compareEvery = time.Hour
)

// UnconfirmedTransactions reads the transactions of a chain that are deep enough to be confirmed, are not yet, and were due to be
// compared with other providers before a time. It reads up to limit of them, and up to share of each account: first one of each
// account, then a second one, and so on. A settler's record counts once it is final.
func (s *Store) UnconfirmedTransactions(ctx context.Context, chain caip.ChainID, p Progress, before time.Time, share int, limit int64) ([]Followed, error) {
	due := s.db.NewSelect().Model((*transactionRow)(nil)).
		ColumnExpr("?TableColumns, row_number() OVER (PARTITION BY account_id ORDER BY compare_at NULLS FIRST, block_number) AS turn").
		Join(`LEFT JOIN disputed_transactions AS disputed USING (account_id, transfer_id, chain_id, hash, role, block_hash)`).
		Where("chain_id = ? AND block_number <= ? AND confirmed_at IS NULL AND state <> 'unsupported'", chain.String(), p.Confirmed).
		Where("compare_at IS NULL OR compare_at < ?", before).
		Where("role IN ('send', 'open') OR block_number <= ?", p.Final)
	return s.followed(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ModelTableExpr("(?) AS transactions", due).Where("turn <= ?", share).Order("turn", "block_number").Limit(limit)
	})
}

type disputedRow struct {
	bun.BaseModel `bun:"table:disputed_transactions,alias:disputed"`

	AccountID     uuid.UUID     `bun:"account_id,pk"`
	TransferID    uuid.UUID     `bun:"transfer_id,pk"`
	ChainID       string        `bun:"chain_id,pk"`
	Hash          []byte        `bun:"hash,pk"`
	Role          transfer.Role `bun:"role,pk"`
	BlockHash     []byte        `bun:"block_hash"`
	DisputedSince time.Time     `bun:"disputed_since"`
	CompareAt     time.Time     `bun:"compare_at"`
}

// DisputeTransactions postpones the next comparison of transactions that no other provider shows the same: for a minute to the
// next poll, then for a quarter of the time since the first comparison, at most an hour.
func (s *Store) DisputeTransactions(ctx context.Context, lease Lease, disputed []Observation) error {
	if len(disputed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.checkEpoch(ctx, lease); err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		rows := make([]disputedRow, len(disputed))
		for n, o := range disputed {
			rows[n] = disputedRow{
				AccountID: o.AccountID, TransferID: o.TransferID, ChainID: o.Chain.String(), Hash: o.Hash.Bytes(), Role: o.Role,
				BlockHash: o.Block.Hash.Bytes(), DisputedSince: now, CompareAt: now,
			}
		}
		_, err = tx.db.NewInsert().Model(&rows).On("CONFLICT (account_id, transfer_id, chain_id, hash, role) DO UPDATE").
			Set("block_hash = excluded.block_hash").
			Set("disputed_since = CASE WHEN disputed.block_hash = excluded.block_hash THEN disputed.disputed_since ELSE excluded.disputed_since END").
			Set(`compare_at = CASE WHEN disputed.block_hash = excluded.block_hash THEN excluded.compare_at + least(greatest(
				excluded.compare_at - disputed.disputed_since - ? * interval '1 ms', interval '0') / 4, ? * interval '1 ms') ELSE excluded.compare_at END`,
				disputedAtOnce.Milliseconds(), compareEvery.Milliseconds()).Exec(ctx)
		if err != nil {
			return fmt.Errorf("postpone the comparison of %d transactions: %w", len(rows), err)
		}
		return nil
	})
}
