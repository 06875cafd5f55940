package intents

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

const (
	// listBatch is how many intents one query of a list reads: the longest page and one more, which shows whether another
	// follows. Each batch is a separate short query, so that a slow client holds neither memory nor a connection nor a snapshot.
	listBatch = 1001
	// batchTimeout bounds one batch, for a database that does not respond. A complete list takes as long as its client reads.
	batchTimeout = 5 * time.Second
	// smallPage is the largest page that costs the primary no more than the check for the replica.
	smallPage = 50
)

// Transfers yields an account's intents until the first error. A list that is ordered by id omits intents created while it runs;
// one that is ordered by the time of the last change ends with those that changed meanwhile. It includes everything that was
// acknowledged before, even if it comes from a replica.
func (s *Store) Transfers(ctx context.Context, accountID uuid.UUID, filter TransferFilter) iter.Seq2[transfer.Summary, error] {
	return func(yield func(transfer.Summary, error) bool) {
		var check ChangeCheck
		if s.db.Replica != nil && (filter.Limit == 0 || filter.Limit > smallPage) {
			var err error
			if check, _, err = s.checkChanges(ctx, accountID, postgres.Cursor{}); err != nil {
				yield(transfer.Summary{}, err)
				return
			}
		}
		s.TransfersAfterCheck(ctx, accountID, filter, check)(yield)
	}
}

// TransfersAfterCheck is Transfers for a caller that has just checked the account for changes, and saves a second check. It
// includes everything that the check has seen.
func (s *Store) TransfersAfterCheck(
	ctx context.Context, accountID uuid.UUID, filter TransferFilter, check ChangeCheck,
) iter.Seq2[transfer.Summary, error] {
	return func(yield func(transfer.Summary, error) bool) {
		at, left := check.replica, filter.Limit
		for {
			filter.Limit = listBatch
			if left > 0 {
				filter.Limit = min(left, listBatch)
			}
			rows, next, err := s.nextBatch(ctx, &at, accountID, filter)
			if err != nil {
				yield(transfer.Summary{}, err)
				return
			}
			for _, summary := range rows {
				if !yield(summary, nil) {
					return
				}
			}
			if next == nil || left > 0 && len(rows) == left {
				return
			}
			left = max(0, left-len(rows))
			filter.After = next
		}
	}
}

// SummaryPage reads one page of an account's intents, in the order of Transfers, and where the next one begins, nil at the end of the list.
// A page of a list whose filter no single index decides examines at most postgres.LongScan intents: it may be empty and have a next one.
func (s *Store) SummaryPage(ctx context.Context, accountID uuid.UUID, filter TransferFilter) (rows []transfer.Summary, next *KeysetCursor, err error) {
	var at postgres.ReplicaPosition
	if s.db.Replica != nil && filter.Limit > smallPage {
		check, _, err := s.checkChanges(ctx, accountID, postgres.Cursor{})
		if err != nil {
			return nil, nil, err
		}
		at = check.replica
	}
	limit := filter.Limit
	filter.Limit++ // one more row shows whether there is a next page
	if rows, next, err = s.nextBatch(ctx, &at, accountID, filter); err != nil {
		return nil, nil, err
	}
	if len(rows) > limit {
		rows, next = rows[:limit], cursorOf(rows[limit-1])
	}
	return rows, next, nil
}

func cursorOf(s transfer.Summary) *KeysetCursor {
	return &KeysetCursor{ID: s.ID, UpdatedAt: s.UpdatedAt}
}

// nextBatch reads one batch. Most accounts have intents of one environment in a list, so a filter that leaves nothing but the environment
// to a scan is read without it first, which costs half as much.
func (s *Store) nextBatch(
	ctx context.Context, at *postgres.ReplicaPosition, accountID uuid.UUID, filter TransferFilter,
) (rows []transfer.Summary, next *KeysetCursor, err error) {
	if wider, ok := filter.decidedButEnvironment(); ok {
		rows, next, err = s.readPage(ctx, at, accountID, wider)
		read := len(rows)
		rows = slices.DeleteFunc(rows, func(row transfer.Summary) bool { return row.Environment != filter.Environment })
		if err != nil || next == nil || len(rows) == read {
			return rows, next, err
		}
	}
	return s.readPage(ctx, at, accountID, filter)
}

// readPage reads one batch from the replica if the replica has replayed the position, and otherwise from the primary. A list
// that has switched to the primary stays there, because the primary is never behind what the list has shown.
func (s *Store) readPage(
	ctx context.Context, at *postgres.ReplicaPosition, accountID uuid.UUID, filter TransferFilter,
) (rows []transfer.Summary, next *KeysetCursor, err error) {
	err = s.db.LongLists.ReadPage(ctx, accountID, filter.Limit, filter.scans(), func(ctx context.Context, scan int) (incomplete bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, batchTimeout)
		defer cancel()
		rows, next, err = s.readNearest(ctx, at, accountID, filter, scan)
		return next != nil && len(rows) < filter.Limit, err
	})
	return rows, next, err
}

// readNearest reads one batch from the replica if it may, and otherwise from the primary.
func (s *Store) readNearest(
	ctx context.Context, at *postgres.ReplicaPosition, accountID uuid.UUID, filter TransferFilter, scan int,
) (rows []transfer.Summary, next *KeysetCursor, err error) {
	if *at != (postgres.ReplicaPosition{}) && s.db.Replica.Usable() {
		err = s.db.Replica.Read(ctx, at, func(ctx context.Context, conn bun.Conn, tx bun.Tx) (more bool, err error) {
			rows, next, err = readBatch(ctx, tx, &summaryReader{conn: conn.Conn}, accountID, filter, scan)
			return next != nil, err
		})
		if err == nil {
			s.metrics.countListBatch(sourceReplica)
			return rows, next, nil
		}
		if ctx.Err() == nil {
			s.db.Replica.ReadFailed(err)
		}
	}
	*at = postgres.ReplicaPosition{}
	if rows, next, err = readBatch(ctx, s.db, &summaryReader{db: s.db}, accountID, filter, scan); err != nil {
		return nil, nil, err
	}
	s.metrics.countListBatch(sourcePrimary)
	return rows, next, nil
}

// readBatch reads one batch from a server, and where the list continues.
func readBatch(
	ctx context.Context, db bun.IDB, reader *summaryReader, accountID uuid.UUID, filter TransferFilter, scan int,
) ([]transfer.Summary, *KeysetCursor, error) {
	const shortBatch = 128 // rows for which memory is allocated before they are read
	query := batchQuery(db, accountID, filter)
	var next *KeysetCursor
	if filter.scans() {
		var keys []uuid.UUID
		var err error
		if keys, next, err = scanTransfers(ctx, db, accountID, filter, scan); err != nil || len(keys) == 0 {
			return nil, next, err
		}
		query = filter.scanned(db.NewSelect().TableExpr(scannedTransfers, accountID, bun.List(keys)).Column(summaryColumns...))
	}
	reader.rows = make([]transfer.Summary, 0, min(filter.Limit, shortBatch))
	if _, err := query.Conn(reader).Exec(ctx); err != nil {
		return nil, nil, fmt.Errorf("list the transfers of account %s: %w", accountID, err)
	}
	if !filter.scans() && len(reader.rows) == filter.Limit {
		next = cursorOf(reader.rows[filter.Limit-1])
	}
	return reader.rows, next, nil
}

// TransferPage is SummaryPage for short pages of whole intents, from the primary.
func (s *Store) TransferPage(ctx context.Context, accountID uuid.UUID, filter TransferFilter) (intents []*transfer.Intent, next *KeysetCursor, err error) {
	limit := min(filter.Limit, postgres.ShortPage-1)
	filter.Limit = limit + 1
	var rows []TransferRow
	err = s.db.LongLists.ReadPage(ctx, accountID, filter.Limit, filter.scans(), func(ctx context.Context, scan int) (incomplete bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, batchTimeout)
		defer cancel()
		rows, next, err = s.readRows(ctx, accountID, filter, scan)
		return next != nil && len(rows) < filter.Limit, err
	})
	if err != nil {
		return nil, nil, err
	}
	if len(rows) > limit {
		rows, next = rows[:limit], &KeysetCursor{ID: rows[limit-1].ID, UpdatedAt: rows[limit-1].UpdatedAt}
	}
	intents = make([]*transfer.Intent, len(rows))
	for n, row := range rows {
		if intents[n], err = row.Intent(); err != nil {
			return nil, nil, err
		}
	}
	return intents, next, nil
}

// readRows is readBatch for whole intents; next is nil unless a scan has ended before the list.
func (s *Store) readRows(ctx context.Context, accountID uuid.UUID, filter TransferFilter, scan int) (rows []TransferRow, next *KeysetCursor, err error) {
	query := filter.page(s.db.NewSelect().Model(&rows), accountID)
	if filter.scans() {
		var keys []uuid.UUID
		if keys, next, err = scanTransfers(ctx, s.db, accountID, filter, scan); err != nil || len(keys) == 0 {
			return nil, next, err
		}
		query = filter.scanned(s.db.NewSelect().Model(&rows).ModelTableExpr(scannedTransfers, accountID, bun.List(keys)))
	}
	if err := query.Scan(ctx); err != nil {
		return nil, nil, fmt.Errorf("list the transfers of account %s: %w", accountID, err)
	}
	return rows, next, nil
}

// ExplainTransfers returns Postgres's plan for the first query of a list, so that a test can check its index.
func (s *Store) ExplainTransfers(ctx context.Context, accountID uuid.UUID, filter TransferFilter) (plan string, err error) {
	var lines []string
	if err := s.db.NewRaw("EXPLAIN ?", batchQuery(s.db, accountID, filter)).Scan(ctx, &lines); err != nil {
		return "", fmt.Errorf("explain a list of transfers: %w", err)
	}
	return strings.Join(lines, "\n"), nil
}

// batchQuery returns the SELECT of one batch of a list that one index decides. Several statuses become one query each, merged: an index
// has the rows of one status in order, but not those of several.
func batchQuery(db bun.IDB, accountID uuid.UUID, filter TransferFilter) *bun.SelectQuery {
	summaries := func() *bun.SelectQuery { return db.NewSelect().Table("transfers").Column(summaryColumns...) }
	if !filter.mergesStatuses() {
		return filter.page(summaries(), accountID)
	}
	// The parentheses that ORDER BY needs inside a union come with the sub-select.
	merged := filter.eachStatus(func(single TransferFilter) *bun.SelectQuery {
		return db.NewSelect().TableExpr("(?) AS part", single.page(summaries(), accountID))
	})
	return db.NewSelect().TableExpr("(?) AS merged", merged).Order("id DESC").Limit(int64(filter.Limit))
}
