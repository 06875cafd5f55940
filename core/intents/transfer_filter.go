package intents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// TransferFilter selects intents. The zero value selects all.
type TransferFilter struct {
	// Environment is empty for both.
	Environment network.Environment
	// Type is empty for all types.
	Type transfer.Type
	// Statuses is empty for all statuses.
	Statuses []transfer.Status
	// Chain is the source chain, DestinationChain the destination's; the zero value for all.
	Chain            caip.ChainID
	DestinationChain caip.ChainID
	// Account and Token are those of either side, the zero value for all. One without a chain is on any chain.
	Account caip.AccountID
	Token   caip.AccountID
	// OrderID is nil for all orders.
	OrderID *[32]byte
	// Batch is nil for all.
	Batch *uuid.UUID
	// Hash and Reference are empty for all.
	Hash      string
	Reference string
	// Labels are those that an intent must have, by key; empty for all. labelled selects intents that have any.
	Labels   map[string]string
	labelled bool
	// UpdatedSince selects intents that changed at this time or later. Such a list is ordered by the time of the last change,
	// oldest first: an intent that changes while the list is read moves to its end and may be listed twice. Every other list is
	// ordered by id, newest first.
	UpdatedSince time.Time
	// CreatedAfter selects intents that were created at this time or later, CreatedBefore those created before it. The zero value is all.
	CreatedAfter, CreatedBefore time.Time
	// createdAbout leaves out most intents that were created at another time, by the index of the list, see split.
	createdAbout idRange
	// After is where the list continues, nil for its beginning.
	After *KeysetCursor
	// Limit is the maximum number of intents, 0 for all.
	Limit int
}

// AddLabel selects intents that have a label. It returns what is wrong with one that no intent can have, empty for nothing.
func (f *TransferFilter) AddLabel(key, value string) (issue string) {
	if !wire.IsLabelKey(key) {
		return wire.LabelKeyRule
	}
	if !wire.IsLabelValue(value) {
		return wire.LabelValueRule
	}
	if f.Labels == nil {
		f.Labels = map[string]string{}
	}
	f.Labels[key] = value
	return ""
}

// KeysetCursor is the last intent of a page, after which the next page begins.
type KeysetCursor struct {
	ID uuid.UUID
	// UpdatedAt is used only in lists that are ordered by it.
	UpdatedAt time.Time
}

// idRange are ids from one, and below another; the zero value is all ids.
type idRange struct{ from, below uuid.UUID }

// createdRange returns the range of the ids of intents that were created between two times. The time in an id is that of the request's
// arrival, and the transaction that dates the intent may begin much later: no request takes as long as a minute.
func createdRange(after, before time.Time) (ids idRange) {
	const slack = time.Minute
	if !after.IsZero() {
		ids.from = transfer.FirstID(after.Add(-slack))
	}
	if !before.IsZero() {
		ids.below = transfer.FirstID(before.Add(slack))
	}
	return ids
}

// split returns the part of the filter that the index of its list decides, and the part that is left, the zero filter for none. One order is
// at most one row, whatever else is asked of it.
func (f TransferFilter) split() (index, rest TransferFilter) {
	rest = f
	rest.After, rest.Limit = nil, 0
	switch {
	case f.OrderID != nil:
		return f, TransferFilter{}
	case f.Batch != nil && f.UpdatedSince.IsZero(): // a hundred rows at most, all of one environment
		index.Batch, index.Environment = f.Batch, f.Environment
		rest.Batch, rest.Environment = nil, ""
	case !f.UpdatedSince.IsZero():
		index.UpdatedSince, rest.UpdatedSince = f.UpdatedSince, time.Time{}
	case f.Hash != "":
		index.Hash, rest.Hash = f.Hash, ""
	case f.Reference != "":
		index.Reference, rest.Reference = f.Reference, ""
	case len(f.Statuses) > 0:
		index.Statuses, rest.Statuses = f.Statuses, nil
	case len(f.Labels) > 0:
		index.labelled = true
	case f.Chain != (caip.ChainID{}):
		index.Chain, rest.Chain = f.Chain, caip.ChainID{}
	case f.Type != "":
		index.Type, rest.Type = f.Type, ""
	default:
		index.Environment, rest.Environment = f.Environment, ""
	}
	if f.UpdatedSince.IsZero() {
		index.createdAbout = createdRange(f.CreatedAfter, f.CreatedBefore)
	}
	index.After, index.Limit = f.After, f.Limit
	return index, rest
}

// scans reports whether no single index decides the filter, so that its list is read by a postgres.ListScan.
func (f TransferFilter) scans() bool {
	_, rest := f.split()
	condition, _ := rest.condition()
	return condition != ""
}

// decidedButEnvironment returns the filter without its environment; ok is true if an index decides that one and not the filter.
func (f TransferFilter) decidedButEnvironment() (wider TransferFilter, ok bool) {
	wider = f
	wider.Environment = ""
	return wider, f.scans() && !wider.scans()
}

// condition is the filter as SQL with its arguments, without its cursor, empty for all intents.
func (f TransferFilter) condition() (condition string, args []any) {
	var all []string
	add := func(sql string, arg any) {
		all, args = append(all, sql), append(args, arg)
	}
	if f.Environment != "" {
		add("environment = ?", f.Environment)
	}
	if f.Type != "" {
		add("type = ?", f.Type)
	}
	if len(f.Statuses) > 0 {
		add("status IN (?)", bun.List(f.Statuses))
	}
	if f.Chain != (caip.ChainID{}) {
		add("source_chain = ?", f.Chain.String())
	}
	if f.DestinationChain != (caip.ChainID{}) {
		add("destination_chain = ?", f.DestinationChain.String())
	}
	either := func(column string, id caip.AccountID) {
		switch {
		case id == (caip.AccountID{}):
		case id.Chain == (caip.ChainID{}):
			all = append(all, "(source_"+column+" = ? OR destination_"+column+" = ?)")
			args = append(args, id.Address, id.Address)
		default:
			all = append(all, "(source_chain = ? AND source_"+column+" = ? OR destination_chain = ? AND destination_"+column+" = ?)")
			args = append(args, id.Chain.String(), id.Address, id.Chain.String(), id.Address)
		}
	}
	either("account", f.Account)
	either("token", f.Token)
	if !f.CreatedAfter.IsZero() {
		add("created_at >= ?", f.CreatedAfter)
	}
	if !f.CreatedBefore.IsZero() {
		add("created_at < ?", f.CreatedBefore)
	}
	if f.Hash != "" {
		add("hash = ?", f.Hash)
	}
	if f.Reference != "" {
		add("reference = ?", f.Reference)
	}
	if f.labelled {
		all = append(all, "labels IS NOT NULL")
	}
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		add("strpos(labels, ?) > 0", wire.LabelText(key, f.Labels[key]))
	}
	if f.Batch != nil {
		add("batch_id = ?", *f.Batch)
	}
	if f.OrderID != nil {
		add("order_id = ?", f.OrderID[:])
	}
	if !f.UpdatedSince.IsZero() {
		add("updated_at >= ?", f.UpdatedSince)
	}
	return strings.Join(all, " AND "), args
}

// order is the order of the list.
func (f TransferFilter) order() string {
	if f.UpdatedSince.IsZero() {
		return "id DESC"
	}
	return "updated_at, id"
}

// after adds the account, the filter and the cursor to a query.
func (f TransferFilter) after(query *bun.SelectQuery, accountID uuid.UUID) *bun.SelectQuery {
	query.Where("account_id = ?", accountID)
	if condition, args := f.condition(); condition != "" {
		query.Where(condition, args...)
	}
	if from := f.createdAbout.from; from != uuid.Nil {
		query.Where("id >= ?", from)
	}
	if below := f.createdAbout.below; below != uuid.Nil {
		query.Where("id < ?", below)
	}
	switch {
	case f.After == nil:
	case f.UpdatedSince.IsZero():
		query.Where("id < ?", f.After.ID)
	default:
		query.Where("(updated_at, id) > (?, ?)", f.After.UpdatedAt, f.After.ID)
	}
	return query
}

// page adds the account, the filter, the cursor, the order and the limit to a query.
func (f TransferFilter) page(query *bun.SelectQuery, accountID uuid.UUID) *bun.SelectQuery {
	f.after(query, accountID).Limit(int64(f.Limit))
	if f.OrderID == nil { // one order is one intent, which needs no order
		query.OrderExpr(f.order())
	}
	return query
}

// scannedTransfers are an account's intents by their ids. The OFFSET keeps the planner from another index than the primary key.
const scannedTransfers = "(SELECT * FROM transfers WHERE account_id = ? AND id IN (?) OFFSET 0) AS transfers"

// scanned adds the filter and the order to a query of scannedTransfers: an intent may have changed since its key was read.
func (f TransferFilter) scanned(query *bun.SelectQuery) *bun.SelectQuery {
	if condition, args := f.condition(); condition != "" {
		query.Where(condition, args...)
	}
	return query.OrderExpr(f.order())
}

// mergesStatuses reports whether the list is merged from the lists of several statuses.
func (f TransferFilter) mergesStatuses() bool {
	index, _ := f.split()
	return len(index.Statuses) > 1
}

// eachStatus returns the union of a query for each status.
func (f TransferFilter) eachStatus(query func(TransferFilter) *bun.SelectQuery) (union *bun.SelectQuery) {
	for _, status := range f.Statuses {
		single := f
		single.Statuses = []transfer.Status{status}
		if union == nil {
			union = query(single)
		} else {
			union = union.UnionAll(query(single))
		}
	}
	return union
}

// transferKey has the key columns of every order.
type transferKey struct {
	ID        uuid.UUID `bun:"id"`
	UpdatedAt time.Time `bun:"updated_at"`
}

// scanTransfers reads the keys of a batch of a list that no single index decides, and where the list continues, nil at its end.
func scanTransfers(
	ctx context.Context, db bun.IDB, accountID uuid.UUID, filter TransferFilter, scan int,
) (ids []uuid.UUID, next *KeysetCursor, err error) {
	index, rest := filter.split()
	condition, args := rest.condition()
	keys := func(of TransferFilter) *bun.SelectQuery {
		return postgres.Matches(of.after(db.NewSelect().Table("transfers").Column("id", "updated_at"), accountID), condition, args...)
	}
	list := postgres.ListScan{Order: filter.order(), Rows: filter.Limit, Scan: scan}
	if filter.mergesStatuses() {
		// An index has the rows of one status in order, but not those of several: each part is in order, and Postgres merges them.
		list.Index = db.NewSelect().TableExpr("(?) AS merged", index.eachStatus(func(single TransferFilter) *bun.SelectQuery {
			return db.NewSelect().TableExpr("(?) AS part", keys(single).OrderExpr(single.order()).Limit(int64(scan)))
		}))
	} else {
		list.Index = keys(index)
	}
	page, last, err := postgres.Scan[transferKey](ctx, db, list)
	if err != nil {
		return nil, nil, fmt.Errorf("scan the transfers of account %s: %w", accountID, err)
	}
	for _, key := range page {
		ids = append(ids, key.ID)
	}
	if last != nil {
		next = &KeysetCursor{ID: last.ID, UpdatedAt: last.UpdatedAt.UTC()}
	}
	return ids, next, nil
}
