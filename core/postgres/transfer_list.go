package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// listBatch is how many intents one query of a list reads: the longest page and one more, which tells whether it goes on.
// Lists are read in batches, each by its own short query, so that a slow client holds neither memory nor a connection nor
// an old snapshot of the database.
const listBatch = 1001

// batchTimeout bounds one such query, for a database that is silent; a list as a whole takes as long as its reader.
const batchTimeout = 5 * time.Second

// TransferFilter narrows a list. The zero value takes everything.
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
	// UpdatedSince keeps what changed at this time or later. A list narrowed by it is ordered by the time of the last
	// change, oldest first: an intent that changes while the list is read moves ahead of the reader, and comes again. Every
	// other list is ordered by id, newest first.
	UpdatedSince time.Time
	// After is where the list continues, nil for its beginning.
	After *KeysetCursor
	// Limit is how many intents to yield at the most, 0 for all.
	Limit int
}

// KeysetCursor is the last intent of a page, after which the next page begins.
type KeysetCursor struct {
	ID uuid.UUID
	// UpdatedAt matters only in lists that are ordered by it.
	UpdatedAt time.Time
}

type summaryRow struct {
	ID                uuid.UUID       `bun:"id"`
	Type              transfer.Type   `bun:"type"`
	Status            transfer.Status `bun:"status"`
	OrderID           []byte          `bun:"order_id"`
	Chain             string          `bun:"source_chain"`
	SourceAmount      string          `bun:"source_amount"`
	DestinationAmount string          `bun:"destination_amount"`
	Reference         string          `bun:"reference"`
	Hash              string          `bun:"hash"`
	CreatedAt         time.Time       `bun:"created_at"`
	UpdatedAt         time.Time       `bun:"updated_at"`
}

// Transfers yields an account's intents until the first error. A list that is ordered by id leaves out intents made while
// it runs; one that is ordered by the time of the last change ends with what has changed meanwhile. Everything that was
// acknowledged before is there, also where the list comes from a replica.
func (s *Store) Transfers(ctx context.Context, accountID uuid.UUID, filter TransferFilter) iter.Seq2[transfer.Summary, error] {
	return func(yield func(transfer.Summary, error) bool) {
		var glance Glance
		if s.replica != nil && (filter.Limit == 0 || filter.Limit > smallPage) {
			var err error
			if glance, _, err = s.glance(ctx, accountID, cursor{}); err != nil {
				yield(transfer.Summary{}, fmt.Errorf("look for changes of account %s: %w", accountID, err))
				return
			}
		}
		s.TransfersSince(ctx, accountID, filter, glance)(yield)
	}
}

// TransfersSince is Transfers for whoever has just had a glance at the account: it spares another, and everything that the
// glance has seen is there.
func (s *Store) TransfersSince(
	ctx context.Context, accountID uuid.UUID, filter TransferFilter, glance Glance,
) iter.Seq2[transfer.Summary, error] {
	return func(yield func(transfer.Summary, error) bool) {
		from := &reading{proven: glance.proven}
		left := filter.Limit
		for {
			filter.Limit = listBatch
			if left > 0 {
				filter.Limit = min(left, listBatch)
			}
			rows, err := s.transferBatch(ctx, from, accountID, filter)
			if err != nil {
				yield(transfer.Summary{}, err)
				return
			}
			for _, row := range rows {
				if summary, err := row.summary(); !yield(summary, err) || err != nil {
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

// ExplainTransfers is Postgres's plan for the first query of a list, so that a test can hold it to its index.
func (s *Store) ExplainTransfers(ctx context.Context, accountID uuid.UUID, filter TransferFilter) (plan string, err error) {
	var lines []string
	if err := s.db.NewRaw("EXPLAIN ?", transferQuery(s.db, accountID, filter)).Scan(ctx, &lines); err != nil {
		return "", fmt.Errorf("explain a list of transfers: %w", err)
	}
	return strings.Join(lines, "\n"), nil
}

// transferBatch reads from the replica while it may, and from the primary otherwise. A list that has turned to the primary
// stays there, where nothing is older than what it has shown.
func (s *Store) transferBatch(ctx context.Context, from *reading, accountID uuid.UUID, filter TransferFilter) ([]summaryRow, error) {
	release, err := s.listSemaphore.Acquire(ctx, accountID, filter.Limit)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	if from.proven != nil && !s.replica.usable() {
		from.proven = nil // it has failed others while this list waited for its turn
	}
	if from.proven != nil {
		rows, err := s.replica.batch(ctx, from, accountID, filter)
		if err == nil {
			s.metrics.countListBatch(sourceReplica)
			return rows, nil
		}
		if ctx.Err() == nil {
			s.replica.failed(err)
		}
		from.proven = nil
	}
	rows := make([]summaryRow, 0, 16)
	if err := transferQuery(s.db, accountID, filter).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("list the transfers of account %s: %w", accountID, err)
	}
	s.metrics.countListBatch(sourcePrimary)
	return rows, nil
}

// transferQuery reads one batch. Several statuses become one query each, merged: an index gives the rows of one status
// in order, but not those of several.
func transferQuery(db *bun.DB, accountID uuid.UUID, filter TransferFilter) *bun.SelectQuery {
	if len(filter.Statuses) < 2 || !filter.UpdatedSince.IsZero() {
		return narrow(db, accountID, filter)
	}
	var parts *bun.SelectQuery
	for _, status := range filter.Statuses {
		of := filter
		of.Statuses = []transfer.Status{status}
		// The parentheses that ORDER BY needs inside a union come with the sub-select.
		part := db.NewSelect().TableExpr("(?) AS part", narrow(db, accountID, of))
		if parts == nil {
			parts = part
		} else {
			parts = parts.UnionAll(part)
		}
	}
	return db.NewSelect().TableExpr("(?) AS merged", parts).Order("id DESC").Limit(int64(filter.Limit))
}

func narrow(db *bun.DB, accountID uuid.UUID, f TransferFilter) *bun.SelectQuery {
	query := db.NewSelect().Table("transfers").
		Column("id", "type", "status", "order_id", "source_chain", "source_amount", "destination_amount",
			"reference", "hash", "created_at", "updated_at").
		Where("account_id = ?", accountID).Limit(int64(f.Limit))
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

func (r summaryRow) summary() (transfer.Summary, error) {
	chainID, err := caip.ParseChainID(r.Chain)
	if err != nil {
		return transfer.Summary{}, fmt.Errorf("read transfer %s: %w", r.ID, err)
	}
	return transfer.Summary{
		ID: r.ID, Type: r.Type, Status: r.Status, OrderID: [32]byte(r.OrderID), Chain: chainID,
		SourceAmount: r.SourceAmount, DestinationAmount: r.DestinationAmount, Reference: r.Reference, Hash: r.Hash,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}, nil
}
