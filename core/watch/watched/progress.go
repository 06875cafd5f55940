package watched

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/uptrace/bun"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// Progress is how far a chain has been read.
type Progress struct {
	// Read is false for a chain that was never read; then all numbers are 0.
	Read bool
	// Head is the newest block that was seen.
	Head uint64
	// Confirmed is the newest block in which an effect confirms an intent, Final the newest that counts as final.
	Confirmed, Final uint64
	// Cursor is the newest block that is not read again. All effects of the blocks up to it are recorded.
	Cursor uint64
	// ReadTo is the newest block whose events were read, from Cursor to Head. What is recorded of blocks above it may come from
	// before a reorganization and is checked when its block is read.
	ReadTo uint64
	// ReadTime is the time of block ReadTo by the chain's clock, zero if it is unknown.
	ReadTime time.Time
	// CompleteUntil is the time of the newest block that was read twice, like every block before it, by the chain's clock. It is
	// zero if it is unknown.
	CompleteUntil time.Time
	// UnopenedUntil is up to which deadline orders without a known opening were compared with their settlers, zero for none.
	UnopenedUntil time.Time
	// Stopped is why the chain is no longer followed, empty while it is.
	Stopped string
	// ReadAt is when the head was seen, by the database's clock.
	ReadAt time.Time
}

type chainRow struct {
	bun.BaseModel `bun:"table:watched_chains"`

	ChainID   string    `bun:"chain_id,pk"`
	Head      uint64    `bun:"head_number,nullzero"`
	Confirmed uint64    `bun:"confirmed_block,nullzero"`
	Final     uint64    `bun:"final_block,nullzero"`
	Cursor    uint64    `bun:"cursor_block,nullzero"`
	Stopped   string    `bun:"stopped,nullzero"`
	ReadAt    time.Time `bun:"read_at,nullzero"`
	ReadBlock uint64    `bun:"read_block,nullzero"`
	ReadTime  time.Time `bun:"read_block_time,nullzero"`
	Complete  time.Time `bun:"complete_until,nullzero"`
	Unopened  time.Time `bun:"unopened_until,nullzero"`
}

func (r chainRow) progress() Progress {
	return Progress{
		Read: !r.ReadAt.IsZero(), Head: r.Head, Confirmed: r.Confirmed, Final: r.Final, Cursor: r.Cursor, Stopped: r.Stopped, ReadAt: r.ReadAt.UTC(),
		ReadTo: min(max(r.ReadBlock, r.Cursor), max(r.Head, r.Cursor)), ReadTime: r.ReadTime.UTC(), CompleteUntil: r.Complete.UTC(), UnopenedUntil: r.Unopened.UTC(),
	}
}

// Progress reads the progress of a chain.
func (s *Store) Progress(ctx context.Context, chain caip.ChainID) (Progress, error) {
	var row chainRow
	err := s.db.NewSelect().Model(&row).Where("chain_id = ?", chain.String()).Scan(ctx)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Progress{}, fmt.Errorf("read the progress of %s: %w", chain, err)
	}
	return row.progress(), nil
}

// AllProgress reads the progress of each chain that was ever watched.
func (s *Store) AllProgress(ctx context.Context) (map[caip.ChainID]Progress, error) {
	return allProgress(ctx, s.db)
}

// AllProgress reads the progress of each chain that was ever watched.
func (tx Tx) AllProgress(ctx context.Context) (map[caip.ChainID]Progress, error) {
	return allProgress(ctx, tx.db)
}

func allProgress(ctx context.Context, db bun.IDB) (map[caip.ChainID]Progress, error) {
	var rows []chainRow
	if err := db.NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the progress of all chains: %w", err)
	}
	all := make(map[caip.ChainID]Progress, len(rows))
	for _, row := range rows {
		id, err := caip.ParseChainID(row.ChainID)
		if err != nil {
			return nil, fmt.Errorf("read the progress of %s: %w", row.ChainID, err)
		}
		all[id] = row.progress()
	}
	return all, nil
}

// Anchors reads the newest known blocks of a chain at or below a number, newest first.
func (s *Store) Anchors(ctx context.Context, chain caip.ChainID, highest uint64, limit int64) ([]transfer.Block, error) {
	var rows []anchorRow
	err := s.db.NewSelect().Model(&rows).Where("chain_id = ? AND number <= ?", chain.String(), highest).
		Order("number DESC").Limit(limit).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the anchors of %s: %w", chain, err)
	}
	blocks := make([]transfer.Block, len(rows))
	for n, row := range rows {
		blocks[n] = transfer.Block{Number: row.Number, Hash: common.Hash(row.Hash)}
	}
	return blocks, nil
}

type anchorRow struct {
	bun.BaseModel `bun:"table:chain_anchors,alias:chain_anchors"`

	ChainID string `bun:"chain_id,pk"`
	Number  uint64 `bun:"number,pk"`
	Hash    []byte `bun:"hash"`
}

// SaveProgress moves the cursor and keeps the anchors that a later reorganization may need: those above the final block and the
// newest one at or below it. Anchors above fork are removed, unless it is nil.
func (tx Tx) SaveProgress(ctx context.Context, chain caip.ChainID, p Progress, anchors []transfer.Block, fork *uint64) error {
	id := chain.String()
	// What only one host has shown of the blocks that the cursor passes is no anchor.
	_, err := tx.db.NewRaw(`DELETE FROM chain_anchors WHERE chain_id = ?0 AND number < ?1
		AND number > (SELECT cursor_block FROM watched_chains WHERE chain_id = ?0)`, id, p.Cursor).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove the anchors of %s that the cursor has passed: %w", chain, err)
	}
	_, err = tx.db.NewRaw(`UPDATE watched_chains SET head_number = ?, confirmed_block = ?, final_block = ?, cursor_block = ?,
		read_block = ?, read_block_time = ?, complete_until = ?, read_at = clock_timestamp() WHERE chain_id = ?`,
		p.Head, p.Confirmed, p.Final, p.Cursor, p.ReadTo, bun.NullTime{Time: p.ReadTime}, bun.NullTime{Time: p.CompleteUntil}, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("save the progress of %s: %w", chain, err)
	}
	if fork != nil {
		if _, err := tx.db.NewRaw("DELETE FROM chain_anchors WHERE chain_id = ? AND number > ?", id, *fork).Exec(ctx); err != nil {
			return fmt.Errorf("remove the anchors of %s that a reorganization took away: %w", chain, err)
		}
	}
	if len(anchors) > 0 {
		rows := make([]anchorRow, len(anchors))
		for n, a := range anchors {
			rows[n] = anchorRow{ChainID: id, Number: a.Number, Hash: a.Hash.Bytes()}
		}
		slices.SortFunc(rows, func(a, b anchorRow) int { return int(a.Number) - int(b.Number) }) //nolint:gosec // block numbers
		rows = slices.CompactFunc(rows, func(a, b anchorRow) bool { return a.Number == b.Number })
		_, err = tx.db.NewInsert().Model(&rows).On("CONFLICT (chain_id, number) DO UPDATE SET hash = excluded.hash").Exec(ctx)
		if err != nil {
			return fmt.Errorf("save the anchors of %s: %w", chain, err)
		}
	}
	_, err = tx.db.NewRaw(`DELETE FROM chain_anchors WHERE chain_id = ?0 AND number < (
		SELECT max(number) FROM chain_anchors WHERE chain_id = ?0 AND number <= ?1)`, id, p.Final).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove old anchors of %s: %w", chain, err)
	}
	return nil
}

// Stop records why a chain is no longer followed, until Resume.
func (s *Store) Stop(ctx context.Context, lease Lease, reason string) error {
	return s.inTx(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.CheckEpoch(ctx, lease); err != nil {
			return err
		}
		_, err := tx.db.NewRaw("UPDATE watched_chains SET stopped = ? WHERE chain_id = ?", reason, lease.Chain.String()).Exec(ctx)
		return err
	})
}

// ErrNotWatched is returned for a chain that was never watched.
var ErrNotWatched = errors.New("the chain has never been watched")

// Resume makes a chain be followed again from a block on. Blocks from it on are read again. Each recorded effect stays until
// its block is read and shown without it.
func (s *Store) Resume(ctx context.Context, chain caip.ChainID, from uint64) error {
	id, cursor := chain.String(), from-min(from, 1)
	return s.inTx(ctx, func(ctx context.Context, tx Tx) error {
		result, err := tx.db.NewRaw(`UPDATE watched_chains SET stopped = NULL, epoch = epoch + 1, lease_until = '-infinity', cursor_block = ?1,
			head_number = ?1, confirmed_block = least(confirmed_block, ?1), final_block = least(final_block, ?1), read_at = clock_timestamp(),
			read_block = ?1, read_block_time = NULL, complete_until = NULL
			WHERE chain_id = ?0`, id, cursor).Exec(ctx)
		if err != nil {
			return fmt.Errorf("resume %s: %w", chain, err)
		}
		if changed, _ := result.RowsAffected(); changed == 0 {
			return ErrNotWatched
		}
		if _, err := tx.db.NewRaw("DELETE FROM chain_anchors WHERE chain_id = ? AND number >= ?", id, cursor).Exec(ctx); err != nil {
			return fmt.Errorf("remove the anchors of %s: %w", chain, err)
		}
		return nil
	})
}

// SaveUnopened records that the orders of a chain whose deadlines are up to a time have been compared with their settlers, if no opening of
// theirs was known. Those without a transaction may expire now: see intents.Store.ExpireTransfers.
func (s *Store) SaveUnopened(ctx context.Context, lease Lease, until time.Time) error {
	return s.inTx(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.CheckEpoch(ctx, lease); err != nil {
			return err
		}
		_, err := tx.db.NewRaw("UPDATE watched_chains SET unopened_until = ? WHERE chain_id = ?", until, lease.Chain.String()).Exec(ctx)
		if err != nil {
			return fmt.Errorf("record which orders of %s are not opened: %w", lease.Chain, err)
		}
		return nil
	})
}
