package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/core/event"
)

const (
	// dispatchEndpoints is how many endpoints one transaction makes deliveries for, and dispatchEvents how many events of each.
	dispatchEndpoints, dispatchEvents = 200, 250
	// deliveryBatch is how many deliveries one statement writes.
	deliveryBatch = 1_000
)

// ofActiveAccount is the condition for endpoints that receive events.
const ofActiveAccount = `webhooks.enabled AND EXISTS (
	SELECT FROM accounts WHERE accounts.id = webhooks.account_id AND accounts.disabled_at IS NULL AND accounts.deleted_at IS NULL)`

// Dispatched is the result of DispatchEvents.
type Dispatched struct {
	// Leased are the endpoints with new deliveries whose lease the holder has or took.
	Leased []uuid.UUID
	// More is true while there may be more events to dispatch.
	More bool
}

// DispatchEvents creates deliveries of the events between the cursors of enabled endpoints and the end of the feed that match the
// endpoints' filters, and moves the cursors. The cursor and the lock on the endpoint's row make each delivery unique for any
// number of processes. It handles the endpoints of these owners and waits for their locks; with nil it handles all endpoints that
// are not locked. It takes the lease of free endpoints that have a due delivery.
func (s *Store) DispatchEvents(ctx context.Context, owners []event.Owner, lease WebhookLease) (d Dispatched, err error) {
	err = s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		rows, err := tx.lockBehind(ctx, owners)
		if err != nil || len(rows) == 0 {
			return err
		}
		d.More = len(rows) == dispatchEndpoints
		entries, err := tx.feedAfter(ctx, rows)
		if err != nil {
			return err
		}
		now := s.Now()
		var deliveries []deliveryRow
		var moved []movedCursor
		for _, row := range rows {
			mine := entries[row.ID]
			if len(mine) == 0 {
				continue
			}
			d.More = d.More || len(mine) == dispatchEvents
			filter, err := row.endpoint().Filter()
			if err != nil {
				return err
			}
			before := len(deliveries)
			for _, entry := range mine {
				if !filter.Match(entry.Type) || entry.gone() {
					continue
				}
				id, err := entry.eventID()
				if err != nil {
					return err
				}
				deliveries = append(deliveries, newDeliveryRow(row.ID, id, entry.Position, entry.Type, now))
			}
			moved = append(moved, movedCursor{ID: row.ID, Cursor: mine[len(mine)-1].Position, Due: len(deliveries) > before})
		}
		if err := tx.insertDeliveries(ctx, deliveries); err != nil {
			return err
		}
		d.Leased, err = tx.moveCursors(ctx, moved, lease)
		return err
	})
	if err != nil {
		return Dispatched{}, fmt.Errorf("dispatch events to webhooks: %w", err)
	}
	return d, nil
}

// lockBehind locks enabled endpoints that have events after their cursor, in the order of their ids, which prevents deadlocks.
func (tx Tx) lockBehind(ctx context.Context, owners []event.Owner) (rows []webhookRow, err error) {
	query := tx.db.NewSelect().Model(&rows).Where(ofActiveAccount).Where(`EXISTS (SELECT FROM feed
		WHERE feed.account_id = webhooks.account_id AND feed.environment = webhooks.environment AND feed.position > webhooks.cursor)`).
		Order("id").Limit(dispatchEndpoints)
	if owners == nil {
		return rows, query.For("NO KEY UPDATE SKIP LOCKED").Scan(ctx)
	}
	accounts, environments := make([]string, len(owners)), make([]string, len(owners))
	for n, o := range owners {
		accounts[n], environments[n] = o.AccountID.String(), string(o.Environment)
	}
	return rows, query.Where("(webhooks.account_id, webhooks.environment) IN (SELECT * FROM unnest(?::uuid[], ?::text[]))",
		pgdialect.Array(accounts), pgdialect.Array(environments)).For("NO KEY UPDATE").Scan(ctx)
}

// feedEntry is a row of the feed with the parts of its event's id.
type feedEntry struct {
	WebhookID  uuid.UUID       `bun:"webhook_id"`
	Position   int64           `bun:"position"`
	Type       event.Type      `bun:"type"`
	Sequence   int64           `bun:"sequence,nullzero"`
	TransferID uuid.UUID       `bun:"transfer_id,nullzero"`
	Data       json.RawMessage `bun:"data"`
}

// gone reports whether the entry's event has been removed with its intent.
func (e feedEntry) gone() bool { return e.TransferID == uuid.Nil && e.Data == nil }

func (e feedEntry) eventID() (event.ID, error) {
	if e.Data == nil {
		return event.NewID(e.TransferID, e.Sequence), nil
	}
	var subject struct{ ID uuid.UUID }
	err := json.Unmarshal(e.Data, &subject)
	return event.NewID(subject.ID, e.Position), err
}

// feedAfter reads events of the feed after the cursors of endpoints, in the order of their positions, at most dispatchEvents of each.
func (tx Tx) feedAfter(ctx context.Context, rows []webhookRow) (map[uuid.UUID][]feedEntry, error) {
	ids := make([]uuid.UUID, len(rows))
	for n, row := range rows {
		ids[n] = row.ID
	}
	var entries []feedEntry
	err := tx.db.NewRaw(`SELECT webhooks.id AS webhook_id, f.position, f.type, f.sequence, events.transfer_id, f.data
		FROM webhooks CROSS JOIN LATERAL (
			SELECT * FROM feed WHERE feed.account_id = webhooks.account_id AND feed.environment = webhooks.environment
				AND feed.position > webhooks.cursor ORDER BY feed.position LIMIT ?1
		) AS f LEFT JOIN events ON events.id = f.event_id AND events.account_id = f.account_id
		WHERE webhooks.id IN (?0) ORDER BY webhooks.id, f.position`, bun.List(ids), dispatchEvents).Scan(ctx, &entries)
	if err != nil {
		return nil, fmt.Errorf("read the feed after the cursors of %d webhooks: %w", len(rows), err)
	}
	of := make(map[uuid.UUID][]feedEntry, len(rows))
	for _, entry := range entries {
		of[entry.WebhookID] = append(of[entry.WebhookID], entry)
	}
	return of, nil
}

// insertDeliveries writes new deliveries, and restarts existing ones, as in a replay.
func (tx Tx) insertDeliveries(ctx context.Context, rows []deliveryRow) error {
	for batch := range slices.Chunk(rows, deliveryBatch) {
		_, err := tx.db.NewInsert().Model(&batch).On("CONFLICT (webhook_id, event_id) DO UPDATE").
			Set("position = excluded.position, status = excluded.status, attempts = 0, next_attempt_at = excluded.next_attempt_at").
			Set("response_status = NULL, error = NULL, updated_at = excluded.updated_at").Returning("NULL").Exec(ctx)
		if err != nil {
			return fmt.Errorf("insert %d deliveries: %w", len(batch), err)
		}
	}
	return nil
}

// movedCursor is the new cursor of an endpoint, and whether it has a new delivery.
type movedCursor struct {
	ID     uuid.UUID `bun:"id,type:uuid"`
	Cursor int64     `bun:"cursor,type:bigint"`
	Due    bool      `bun:"due,type:boolean"`
}

// moveCursors moves cursors and takes the free leases of endpoints with new deliveries. It returns the endpoints with new deliveries that
// the holder sends to.
func (tx Tx) moveCursors(ctx context.Context, moved []movedCursor, lease WebhookLease) (leased []uuid.UUID, err error) {
	if len(moved) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID     uuid.UUID
		Leased bool
	}
	err = tx.db.NewRaw(`WITH moved (id, cursor, due) AS (?0) UPDATE webhooks SET cursor = moved.cursor,
			lease_holder = CASE WHEN moved.due AND `+freeLease+` THEN ?1 ELSE lease_holder END,
			lease_until = CASE WHEN moved.due AND `+freeLease+` THEN clock_timestamp() + ?2 * interval '1 millisecond' ELSE lease_until END
		FROM moved WHERE webhooks.id = moved.id RETURNING webhooks.id, moved.due AND lease_holder = ?1 AS leased`,
		tx.db.NewValues(&moved), lease.Holder, lease.TTL.Milliseconds()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("move the cursors of %d webhooks: %w", len(moved), err)
	}
	for _, row := range rows {
		if row.Leased {
			leased = append(leased, row.ID)
		}
	}
	slices.SortFunc(leased, func(a, b uuid.UUID) int { return cmp.Compare(a.String(), b.String()) })
	return leased, nil
}
