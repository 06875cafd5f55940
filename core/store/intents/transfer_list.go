package intents

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
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

// TransferFilter selects intents. The zero value selects all.
type TransferFilter struct {
	// Type is empty for all types.
	Type transfer.Type
	// Statuses is empty for all statuses.
	Statuses []transfer.Status
	// Chain is the source chain, the zero value for all.
	Chain caip.ChainID
	// OrderID is nil for all orders.
	OrderID *[32]byte
	// Hash and Reference are empty for all.
	Hash      string
	Reference string
	// UpdatedSince selects intents that changed at this time or later. Such a list is ordered by the time of the last change,
	// oldest first: an intent that changes while the list is read moves to its end and may be listed twice. Every other list is
	// ordered by id, newest first.
	UpdatedSince time.Time
	// After is where the list continues, nil for its beginning.
	After *KeysetCursor
	// Limit is the maximum number of intents, 0 for all.
	Limit int
}

// KeysetCursor is the last intent of a page, after which the next page begins.
type KeysetCursor struct {
	ID uuid.UUID
	// UpdatedAt is used only in lists that are ordered by it.
	UpdatedAt time.Time
}

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
			rows, err := s.nextBatch(ctx, &at, accountID, filter)
			if err != nil {
				yield(transfer.Summary{}, err)
				return
			}
			for _, summary := range rows {
				if !yield(summary, nil) {
					return
				}
			}
			if len(rows) < filter.Limit || len(rows) == left {
				return
			}
			left = max(0, left-len(rows))
			last := rows[len(rows)-1]
			filter.After = &KeysetCursor{ID: last.ID, UpdatedAt: last.UpdatedAt}
		}
	}
}

// nextBatch reads one batch from the replica if the replica has replayed the position, and otherwise from the primary. A list
// that has switched to the primary stays there, because the primary is never behind what the list has shown.
func (s *Store) nextBatch(ctx context.Context, at *postgres.ReplicaPosition, accountID uuid.UUID, filter TransferFilter) ([]transfer.Summary, error) {
	release, err := s.db.LongLists.Acquire(ctx, accountID, filter.Limit)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	if *at != (postgres.ReplicaPosition{}) && s.db.Replica.Usable() {
		rows, err := readFromReplica(ctx, s.db.Replica, at, accountID, filter)
		if err == nil {
			s.metrics.countListBatch(sourceReplica)
			return rows, nil
		}
		if ctx.Err() == nil {
			s.db.Replica.ReadFailed(err)
		}
	}
	*at = postgres.ReplicaPosition{}
	rows, err := readBatch(ctx, s.db, &summaryReader{db: s.db}, accountID, filter)
	if err != nil {
		return nil, err
	}
	s.metrics.countListBatch(sourcePrimary)
	return rows, nil
}

// readBatch reads one batch from a server.
func readBatch(ctx context.Context, db bun.IDB, reader *summaryReader, accountID uuid.UUID, filter TransferFilter) ([]transfer.Summary, error) {
	const shortBatch = 128 // rows for which memory is allocated before they are read
	reader.rows = make([]transfer.Summary, 0, min(filter.Limit, shortBatch))
	if _, err := batchQuery(db, accountID, filter).Conn(reader).Exec(ctx); err != nil {
		return nil, fmt.Errorf("list the transfers of account %s: %w", accountID, err)
	}
	return reader.rows, nil
}

// TransferPage reads one short page of an account's whole intents, in the order of Transfers, from the primary.
func (s *Store) TransferPage(ctx context.Context, accountID uuid.UUID, filter TransferFilter) ([]*transfer.Intent, error) {
	filter.Limit = min(cmp.Or(filter.Limit, postgres.ShortPage), postgres.ShortPage)
	var rows []TransferRow
	if err := filterTransfers(s.db.NewSelect().Model(&rows), accountID, filter).Scan(ctx); err != nil {
		return nil, fmt.Errorf("list the transfers of account %s: %w", accountID, err)
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

// ExplainTransfers returns Postgres's plan for the first query of a list, so that a test can check its index.
func (s *Store) ExplainTransfers(ctx context.Context, accountID uuid.UUID, filter TransferFilter) (plan string, err error) {
	var lines []string
	if err := s.db.NewRaw("EXPLAIN ?", batchQuery(s.db, accountID, filter)).Scan(ctx, &lines); err != nil {
		return "", fmt.Errorf("explain a list of transfers: %w", err)
	}
	return strings.Join(lines, "\n"), nil
}

// batchQuery returns the SELECT of one batch. Several statuses become one query each, merged: an index has the rows of one status
// in order, but not those of several.
func batchQuery(db bun.IDB, accountID uuid.UUID, filter TransferFilter) *bun.SelectQuery {
	if len(filter.Statuses) < 2 || !filter.UpdatedSince.IsZero() {
		return selectTransfers(db, accountID, filter)
	}
	var union *bun.SelectQuery
	for _, status := range filter.Statuses {
		single := filter
		single.Statuses = []transfer.Status{status}
		// The parentheses that ORDER BY needs inside a union come with the sub-select.
		part := db.NewSelect().TableExpr("(?) AS part", selectTransfers(db, accountID, single))
		if union == nil {
			union = part
		} else {
			union = union.UnionAll(part)
		}
	}
	return db.NewSelect().TableExpr("(?) AS merged", union).Order("id DESC").Limit(int64(filter.Limit))
}

func selectTransfers(db bun.IDB, accountID uuid.UUID, f TransferFilter) *bun.SelectQuery {
	return filterTransfers(db.NewSelect().Table("transfers").Column(summaryColumns...), accountID, f)
}

func filterTransfers(query *bun.SelectQuery, accountID uuid.UUID, f TransferFilter) *bun.SelectQuery {
	query.Where("account_id = ?", accountID).Limit(int64(f.Limit))
	if f.Type != "" {
		query.Where("type = ?", f.Type)
	}
	if len(f.Statuses) > 0 {
		query.Where("status IN (?)", bun.List(f.Statuses))
	}
	if f.Chain != (caip.ChainID{}) {
		query.Where("source_chain = ?", f.Chain.String())
	}
	if f.Hash != "" {
		query.Where("hash = ?", f.Hash)
	}
	if f.Reference != "" {
		query.Where("reference = ?", f.Reference)
	}
	if f.OrderID != nil {
		query.Where("order_id = ?", f.OrderID[:])
	}
	if f.UpdatedSince.IsZero() {
		if f.After != nil {
			query.Where("id < ?", f.After.ID)
		}
		if f.OrderID == nil { // one order is one intent, which needs no order
			query.Order("id DESC")
		}
		return query
	}
	query.Where("updated_at >= ?", f.UpdatedSince)
	if f.After != nil {
		query.Where("(updated_at, id) > (?, ?)", f.After.UpdatedAt, f.After.ID)
	}
	return query.Order("updated_at", "id")
}

// readFromReplica reads one batch from the replica if it has replayed the position, and raises the position for the next batch.
func readFromReplica(
	ctx context.Context, replica *postgres.Replica, at *postgres.ReplicaPosition, accountID uuid.UUID, filter TransferFilter,
) (rows []transfer.Summary, err error) {
	err = replica.Read(ctx, at, func(ctx context.Context, conn bun.Conn, tx bun.Tx) (more bool, err error) {
		rows, err = readBatch(ctx, tx, &summaryReader{conn: conn.Conn}, accountID, filter)
		return len(rows) == filter.Limit, err
	})
	return rows, err
}
