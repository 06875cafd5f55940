package intents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// TransfersByOrders reads the intents of order ids, of all accounts. Unknown order ids, and those of simulated intents, are skipped.
func (s *Store) TransfersByOrders(ctx context.Context, orderIDs [][32]byte) ([]*transfer.Intent, error) {
	if len(orderIDs) == 0 {
		return nil, nil
	}
	ids := make([][]byte, len(orderIDs))
	for n := range orderIDs {
		ids[n] = orderIDs[n][:]
	}
	var rows []TransferRow
	if err := s.db.NewSelect().Model(&rows).Where("order_id = ANY (?) AND "+watchedIntents, pgdialect.Array(ids)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the transfers of %d orders: %w", len(ids), err)
	}
	return readEach(s, rows, TransferRow.Intent), nil
}

// OldestUnsent reads the creation time of the oldest swap or bridge from a chain that has no known transaction; ok is false if
// there is none.
func (s *Store) OldestUnsent(ctx context.Context, chain caip.ChainID) (created time.Time, ok bool, err error) {
	var oldest bun.NullTime
	err = s.db.NewRaw("SELECT min(created_at) FROM transfers WHERE status = ? AND source_chain = ? AND type <> ?",
		transfer.Created, chain.String(), transfer.Transfer).Scan(ctx, &oldest)
	if err != nil {
		return created, false, fmt.Errorf("read the oldest intent of %s: %w", chain, err)
	}
	return oldest.Time, !oldest.IsZero(), nil
}

// RecordedBlock returns the block of the n-th transaction of a chain, counted from 1, that is in a block above a number; ok is
// false if there are fewer.
func (s *Store) RecordedBlock(ctx context.Context, chain caip.ChainID, above uint64, n int) (block uint64, ok bool, err error) {
	err = s.db.NewRaw("SELECT block_number FROM transactions WHERE chain_id = ? AND block_number > ? ORDER BY block_number OFFSET ? LIMIT 1",
		chain.String(), above, n-1).Scan(ctx, &block)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("count the transactions of %s above block %d: %w", chain, above, err)
	}
	return block, true, nil
}

// ObservationsBetween reads the transactions of a chain that are in blocks above a number and up to another.
func (s *Store) ObservationsBetween(ctx context.Context, chain caip.ChainID, above, to uint64) ([]Observation, error) {
	var rows []transactionRow
	err := s.db.NewSelect().Model(&rows).Where("chain_id = ? AND block_number > ? AND block_number <= ?", chain.String(), above, to).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the transactions of %s in blocks %d to %d: %w", chain, above+1, to, err)
	}
	return readEach(s, rows, transactionRow.observation), nil
}

// ConfirmedBetween reads the blocks, above a number and up to another, in which a chain's confirmed transactions are.
func (s *Store) ConfirmedBetween(ctx context.Context, chain caip.ChainID, above, to uint64) ([]transfer.Block, error) {
	var rows []transactionRow
	err := s.db.NewSelect().Model(&rows).Distinct().Column("block_number", "block_hash").
		Where("chain_id = ? AND block_number > ? AND block_number <= ? AND confirmed_at IS NOT NULL", chain.String(), above, to).
		Order("block_number").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the confirmed blocks of %s above block %d: %w", chain, above, err)
	}
	blocks := make([]transfer.Block, len(rows))
	for n, row := range rows {
		blocks[n] = transfer.Block{Number: *row.BlockNumber, Hash: common.Hash(row.BlockHash)}
	}
	return blocks, nil
}

// Followed is a transaction with its intent.
type Followed struct {
	Observation
	Intent *transfer.Intent
}

// PendingAttempts reads attempts of a chain that are in no block yet, up to limit of them.
func (s *Store) PendingAttempts(ctx context.Context, chain caip.ChainID, limit int64) ([]Followed, error) {
	return s.followed(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("chain_id = ? AND state IN ('pending', 'dropped') AND due_at IS NOT NULL", chain.String()).Limit(limit)
	})
}

// PendingAmong reads the attempts of a chain that are in no block yet and have one of the hashes.
func (s *Store) PendingAmong(ctx context.Context, chain caip.ChainID, hashes []common.Hash) ([]Followed, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	wanted := make([][]byte, len(hashes))
	for n, h := range hashes {
		wanted[n] = h[:]
	}
	return s.followed(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("chain_id = ? AND state IN ('pending', 'dropped') AND due_at IS NOT NULL AND hash = ANY (?)", chain.String(), pgdialect.Array(wanted))
	})
}

// FollowedBetween reads the transactions of a chain that are in blocks above a number and up to another, with their intents.
func (s *Store) FollowedBetween(ctx context.Context, chain caip.ChainID, above, to uint64) ([]Followed, error) {
	return s.followed(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("chain_id = ? AND block_number > ? AND block_number <= ?", chain.String(), above, to)
	})
}

// followed reads transactions and then their intents.
func (s *Store) followed(ctx context.Context, narrow func(*bun.SelectQuery) *bun.SelectQuery) ([]Followed, error) {
	var rows []transactionRow
	if err := narrow(s.db.NewSelect().Model(&rows)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read transactions to follow: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	read := readEach(s, rows, transactionRow.observation)
	keys := keysOf(read)
	if len(keys) == 0 {
		return nil, nil
	}
	var transfers []TransferRow
	err := s.db.NewSelect().With("wanted", s.db.NewValues(&keys)).Model(&transfers).
		Join("JOIN wanted ON wanted.account_id = transfers.account_id AND wanted.id = transfers.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the transfers of %d transactions: %w", len(rows), err)
	}
	byKey := make(map[TransferKey]*transfer.Intent, len(transfers))
	for _, intent := range readEach(s, transfers, TransferRow.Intent) {
		byKey[keyOf(intent)] = intent
	}
	all := make([]Followed, 0, len(read))
	for _, o := range read {
		if intent := byKey[o.transferKey()]; intent != nil {
			all = append(all, Followed{o, intent})
		}
	}
	return all, nil
}

// Payment identifies a transaction within an account.
type Payment struct {
	AccountID uuid.UUID
	Hash      common.Hash
}

// Effect is a log that confirms an intent, or transfer.NoLog.
type Effect struct {
	TransferID uuid.UUID
	LogIndex   int64
}

// TakenEffects reads which effects of a chain's transactions already confirm intents of an account.
func (s *Store) TakenEffects(ctx context.Context, chain caip.ChainID, payments []Payment) (map[Payment][]Effect, error) {
	if len(payments) == 0 {
		return nil, nil
	}
	hashes := make([][]byte, len(payments))
	for n := range payments {
		hashes[n] = payments[n].Hash[:]
	}
	accounts := make([]string, len(payments))
	for n := range payments {
		accounts[n] = payments[n].AccountID.String()
	}
	var rows []transactionRow
	err := s.db.NewSelect().Model(&rows).Column("account_id", "transfer_id", "hash", "log_index").
		Where("account_id = ANY (?::uuid[]) AND chain_id = ? AND hash = ANY (?) AND log_index IS NOT NULL", pgdialect.Array(accounts), chain.String(), pgdialect.Array(hashes)).
		Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read which effects are taken: %w", err)
	}
	taken := map[Payment][]Effect{}
	for _, row := range rows {
		key := Payment{row.AccountID, common.Hash(row.Hash)}
		taken[key] = append(taken[key], Effect{row.TransferID, *row.LogIndex})
	}
	return taken, nil
}

// ChainActive reports whether unfinished intents may touch a chain: an intent was created whose deadline is not long past, or a
// transaction is still followed. The refund of an order and a contradicted transaction, which are only compared now and then, do not count.
func (s *Store) ChainActive(ctx context.Context, chain caip.ChainID) (active bool, err error) {
	err = s.db.NewRaw(`SELECT EXISTS (SELECT FROM chain_activity WHERE chain_id = ?0 AND active_until > clock_timestamp())
		OR EXISTS (SELECT FROM transactions WHERE chain_id = ?0 AND due_at IS NOT NULL AND state = 'pending')
		OR EXISTS (SELECT FROM transactions WHERE chain_id = ?0 AND due_at IS NOT NULL AND state = 'mined' AND role = 'open')
		OR EXISTS (SELECT FROM transactions WHERE chain_id = ?0 AND `+sent.where+`) OR EXISTS (SELECT FROM transactions WHERE chain_id = ?0 AND `+settled.where+`)
		OR EXISTS (SELECT FROM transactions WHERE chain_id = ?0 AND compare_at <= statement_timestamp() AND `+disputed.where+`)`,
		chain.String()).Scan(ctx, &active)
	if err != nil {
		return false, fmt.Errorf("read whether %s is active: %w", chain, err)
	}
	return active, nil
}

// KeepActive records that intents may touch a chain until a time.
func (s *Store) KeepActive(ctx context.Context, chain caip.ChainID, until time.Time) error {
	_, err := s.db.NewRaw(`INSERT INTO chain_activity AS a (chain_id, active_until) VALUES (?, ?)
		ON CONFLICT (chain_id) DO UPDATE SET active_until = excluded.active_until WHERE a.active_until < excluded.active_until`,
		chain.String(), until).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record that %s is active: %w", chain, err)
	}
	return nil
}

// ChainSettlers reads every settler that a chain ever had.
func (s *Store) ChainSettlers(ctx context.Context, chain caip.ChainID) (addresses []common.Address, err error) {
	var texts []string
	if err := s.db.NewRaw("SELECT address FROM chain_settlers WHERE chain_id = ? ORDER BY address", chain.String()).Scan(ctx, &texts); err != nil {
		return nil, fmt.Errorf("read the settlers of %s: %w", chain, err)
	}
	for _, text := range texts {
		addresses = append(addresses, common.HexToAddress(text))
	}
	return addresses, nil
}
