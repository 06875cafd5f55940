package intents

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

const (
	// disputedAtOnce is how long a transaction that other providers contradict is compared at each poll: most only lag.
	disputedAtOnce = time.Minute
	// compareEvery is the longest time between two comparisons of a transaction.
	compareEvery = time.Hour
)

// UnconfirmedTransactions reads the transactions of a chain that are deep enough to be confirmed, are not yet, and were due to be
// compared with other providers before a time, up to limit of them. Accounts have shares as in DueAttempts. A settler's record counts once
// it is final. Settlers' transactions and contradicted ones have a part each, and attempts what these leave.
func (s *Store) UnconfirmedTransactions(ctx context.Context, chain caip.ChainID, p watched.Progress, before time.Time, limit int) (all []Followed, err error) {
	quoted := "'" + before.UTC().Format(time.RFC3339Nano) + "'::timestamptz"
	for _, part := range []struct {
		of    queue
		until string
		limit int
	}{
		{disputed, quoted + " - interval '1 microsecond'", limit / 5},
		{settled, strconv.FormatUint(p.Final, 10), 2 * limit / 5},
		{sent, strconv.FormatUint(p.Confirmed, 10), limit},
	} {
		page, _, err := s.due(ctx, part.of, chain, part.until, Turn{}, min(part.limit, limit-len(all)))
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, page)
	}
	return all, nil
}

type disputedRow struct {
	AccountID  uuid.UUID     `bun:"account_id,type:uuid"`
	TransferID uuid.UUID     `bun:"transfer_id,type:uuid"`
	ChainID    string        `bun:"chain_id,type:text"`
	Hash       []byte        `bun:"hash,type:bytea"`
	Role       transfer.Role `bun:"role,type:text"`
	BlockHash  []byte        `bun:"block_hash,type:bytea"`
}

// DisputeTransactions postpones the next comparison of transactions that no other provider shows the same: for a minute to the
// next poll, then for a quarter of the time since the first comparison, at most an hour.
func (s *Store) DisputeTransactions(ctx context.Context, lease watched.Lease, disputed []Observation) error {
	if len(disputed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	return s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		if err := watched.Within(tx.db).CheckEpoch(ctx, lease); err != nil {
			return err
		}
		answered := answeredBy(disputed)
		locked, err := tx.lockTransfers(ctx, answered)
		if err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		rows := make([]disputedRow, len(disputed))
		for n, o := range disputed {
			rows[n] = disputedRow{
				AccountID: o.AccountID, TransferID: o.TransferID, ChainID: o.Chain.String(), Hash: o.Hash.Bytes(), Role: o.Role, BlockHash: o.Block.Hash.Bytes(),
			}
		}
		_, err = tx.db.NewUpdate().With("disputed", tx.db.NewValues(&rows)).Model((*transactionRow)(nil)).TableExpr("disputed").
			Set("disputed_since = coalesce(transactions.disputed_since, ?0)", now).
			Set(`compare_at = ?0::timestamptz + least(greatest(?0 - coalesce(transactions.disputed_since, ?0) - ?1 * interval '1 ms',
				interval '0') / 4, ?2 * interval '1 ms')`, now, disputedAtOnce.Milliseconds(), compareEvery.Milliseconds()).
			Where("transactions.account_id = disputed.account_id AND transactions.transfer_id = disputed.transfer_id AND transactions.chain_id = disputed.chain_id").
			Where("transactions.hash = disputed.hash AND transactions.role = disputed.role AND transactions.block_hash = disputed.block_hash").Exec(ctx)
		if err != nil {
			return fmt.Errorf("postpone the comparison of %d transactions: %w", len(rows), err)
		}
		return tx.saveAnswered(ctx, answered, locked)
	})
}
