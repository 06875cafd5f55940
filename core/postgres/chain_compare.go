package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/transfer"
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
	due := s.db.NewSelect().Model((*transactionRow)(nil)).ColumnExpr("transactions.*").
		ColumnExpr("row_number() OVER (PARTITION BY account_id ORDER BY compare_at NULLS FIRST, block_number) AS turn").
		Where("chain_id = ? AND block_number <= ? AND confirmed_at IS NULL AND state <> 'unsupported'", chain.String(), p.Confirmed).
		Where("compare_at IS NULL OR compare_at < ?", before).
		Where("role IN ('send', 'open') OR block_number <= ?", p.Final)
	return s.followed(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ModelTableExpr("(?) AS transactions", due).Where("turn <= ?", share).Order("turn", "block_number").Limit(limit)
	})
}

// disputedRow is the key of a transaction.
type disputedRow struct {
	AccountID  uuid.UUID     `bun:"account_id,type:uuid"`
	TransferID uuid.UUID     `bun:"transfer_id,type:uuid"`
	ChainID    string        `bun:"chain_id,type:text"`
	Hash       []byte        `bun:"hash,type:bytea"`
	Role       transfer.Role `bun:"role,type:text"`
}

// DisputeTransactions postpones the next comparison of transactions that no other provider shows the same: for a minute to the
// next poll, then for a quarter of the time since the first comparison, at most an hour.
func (s *Store) DisputeTransactions(ctx context.Context, lease Lease, disputed []Observation) error {
	if len(disputed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	rows := make([]disputedRow, len(disputed))
	for n, o := range disputed {
		rows[n] = disputedRow{o.AccountID, o.TransferID, o.Chain.String(), o.Hash.Bytes(), o.Role}
	}
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.checkEpoch(ctx, lease); err != nil {
			return err
		}
		if _, err := tx.lockTransfers(ctx, keysOf(disputed)); err != nil { // the order of locks of all who change transactions
			return err
		}
		_, err := tx.db.NewUpdate().With("disputed", tx.db.NewValues(&rows)).Model((*transactionRow)(nil)).TableExpr("disputed").
			Set("disputed_since = coalesce(disputed_since, clock_timestamp())").
			Set(`compare_at = clock_timestamp() + least(greatest(clock_timestamp() - disputed_since - ?0 * interval '1 ms', interval '0') / 4, ?1 * interval '1 ms')`,
				disputedAtOnce.Milliseconds(), compareEvery.Milliseconds()).
			Where("transactions.account_id = disputed.account_id AND transactions.transfer_id = disputed.transfer_id").
			Where("transactions.chain_id = disputed.chain_id AND transactions.hash = disputed.hash AND transactions.role = disputed.role").Exec(ctx)
		if err != nil {
			return fmt.Errorf("postpone the comparison of %d transactions: %w", len(rows), err)
		}
		return nil
	})
}
