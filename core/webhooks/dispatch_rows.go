package webhooks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/feed"
	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

const (
	// dispatchShare is how many events a round reads for the endpoints of one account together.
	dispatchShare = 400
	// dispatchWrite is how many deliveries one transaction creates, which bounds how long it locks endpoints.
	dispatchWrite = 500
	// dispatchAccounts is how many accounts one search finds.
	dispatchAccounts = 10_000
)

// ofActiveAccount is the condition for endpoints that receive events.
const ofActiveAccount = `webhooks.enabled AND EXISTS (
	SELECT FROM accounts WHERE accounts.id = webhooks.account_id AND accounts.disabled_at IS NULL AND accounts.deleted_at IS NULL)`

// nextEvent is the first event of the feed after an endpoint's cursor.
const nextEvent = `SELECT position FROM feed WHERE feed.account_id = webhooks.account_id AND feed.environment = webhooks.environment
	AND feed.position > webhooks.cursor ORDER BY feed.position LIMIT 1`

// waitingSince is since when an endpoint waits for its next event: since the event got its position, but at the earliest since the
// last change of the endpoint, which may have enabled or replayed it.
const waitingSince = `greatest(to_timestamp(next.position / 1000000.0), webhooks.updated_at)`

// AccountsBehind returns the accounts that have events to dispatch, the one that has waited longest first.
func (s *Store) AccountsBehind(ctx context.Context) (accounts []uuid.UUID, err error) {
	err = s.db.NewRaw(`SELECT webhooks.account_id FROM webhooks CROSS JOIN LATERAL (`+nextEvent+`) AS next WHERE `+ofActiveAccount+`
		GROUP BY webhooks.account_id ORDER BY min(`+waitingSince+`), webhooks.account_id LIMIT ?`, dispatchAccounts).Scan(ctx, &accounts)
	if err != nil {
		return nil, fmt.Errorf("find the accounts with events to dispatch: %w", err)
	}
	return accounts, nil
}

// Dispatched is the result of DispatchEvents.
type Dispatched struct {
	// Leased are the endpoints with new deliveries whose lease the holder has or took.
	Leased []LeasedWebhook
	// Behind are the accounts that have more events to dispatch, in the order in which they were given. It omits endpoints that
	// were locked, changed meanwhile or failed: AccountsBehind finds their accounts.
	Behind []uuid.UUID
}

// DispatchEvents creates deliveries of the events after the cursors of these accounts' enabled endpoints that match the endpoints'
// filters, and moves the cursors. Every account has the same share of a round, which its endpoints divide. It skips endpoints that
// another transaction has locked, and one that fails fails alone: d is valid for all others if err is not nil. It takes the lease
// of free endpoints that have a due delivery, none if the lease has no TTL.
//
// The cursor, compared under the lock on the endpoint's row, makes each delivery unique for any number of processes.
func (s *Store) DispatchEvents(ctx context.Context, accounts []uuid.UUID, lease Lease) (d Dispatched, err error) {
	all, err := s.readDispatches(ctx, accounts)
	if err != nil {
		return Dispatched{}, fmt.Errorf("dispatch events to webhooks: %w", err)
	}
	behind := map[uuid.UUID]bool{}
	for _, chunk := range chunkDispatches(all) {
		leased, err2 := s.writeDispatches(ctx, chunk, lease, behind)
		d.Leased, err = append(d.Leased, leased...), errors.Join(err, err2)
	}
	for _, id := range accounts {
		if behind[id] {
			d.Behind = append(d.Behind, id)
		}
	}
	if err != nil {
		err = fmt.Errorf("dispatch events to webhooks: %w", err)
	}
	return d, err
}

// endpointDispatch is the part of a round that is for one endpoint.
type endpointDispatch struct {
	webhookRow
	// limit is how many events were read at most.
	limit      int
	entries    []feedEntry
	deliveries []deliveryRow
	// pace spreads the first attempts of the deliveries.
	pace Pace
}

// feedEntry is a row of the feed after the cursor of an endpoint.
type feedEntry struct {
	WebhookID uuid.UUID `bun:"webhook_id"`
	ID        uuid.UUID `bun:"id"`
	Position  int64     `bun:"position"`
	Type      feed.Type `bun:"type"`
	// Kept is false if the event has been removed with its intent.
	Kept bool `bun:"kept"`
}

// readDispatches reads what there is to dispatch, without locks.
func (s *Store) readDispatches(ctx context.Context, accounts []uuid.UUID) ([]*endpointDispatch, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	var rows []webhookRow
	err := s.db.NewSelect().Model(&rows).Where("webhooks.account_id IN (?)", bun.List(accounts)).Where(ofActiveAccount).
		Where("EXISTS ("+nextEvent+")").Order("account_id", "id").Scan(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	endpointsOf := map[uuid.UUID]int{}
	for _, row := range rows {
		endpointsOf[row.AccountID]++
	}
	all, byID := make([]*endpointDispatch, len(rows)), make(map[uuid.UUID]*endpointDispatch, len(rows))
	for n, row := range rows {
		all[n] = &endpointDispatch{webhookRow: row, limit: max(1, dispatchShare/endpointsOf[row.AccountID])}
		if row.PacedUntil != nil {
			all[n].pace.Until = row.PacedUntil.UTC()
		}
		byID[row.ID] = all[n]
	}
	entries, err := s.feedAfter(ctx, all)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	for _, entry := range entries {
		e := byID[entry.WebhookID]
		e.entries = append(e.entries, entry)
		if entry.Kept && e.endpoint().Receives(entry.Type) {
			delivery := newDeliveryRow(e.ID, feed.ID(entry.ID), entry.Position, entry.Type, now)
			delivery.NextAttemptAt = new(e.pace.Next(now))
			e.deliveries = append(e.deliveries, delivery)
		}
	}
	return slices.DeleteFunc(all, func(e *endpointDispatch) bool { return len(e.entries) == 0 }), nil
}

// feedAfter reads events of the feed after the cursors of endpoints, in the order of their positions, of each up to its limit.
func (s *Store) feedAfter(ctx context.Context, all []*endpointDispatch) (entries []feedEntry, err error) {
	type cursorRow struct {
		ID          uuid.UUID           `bun:"id,type:uuid"`
		AccountID   uuid.UUID           `bun:"account_id,type:uuid"`
		Environment network.Environment `bun:"environment,type:text"`
		Cursor      int64               `bun:"cursor,type:bigint"`
		Limit       int                 `bun:"events,type:integer"`
	}
	cursors := make([]cursorRow, len(all))
	for n, e := range all {
		cursors[n] = cursorRow{e.ID, e.AccountID, e.Environment, e.Cursor, e.limit}
	}
	err = s.db.NewRaw(`WITH webhooks (id, account_id, environment, cursor, events) AS (?0)
		SELECT webhooks.id AS webhook_id, f.id, f.position, f.type, f.data IS NOT NULL OR events.transfer_id IS NOT NULL AS kept
		FROM webhooks CROSS JOIN LATERAL (
			SELECT * FROM feed WHERE feed.account_id = webhooks.account_id AND feed.environment = webhooks.environment
				AND feed.position > webhooks.cursor ORDER BY feed.position LIMIT webhooks.events
		) AS f LEFT JOIN LATERAL (SELECT transfer_id FROM events WHERE id = f.event_id AND account_id = f.account_id LIMIT 1) AS events ON true
		ORDER BY webhooks.id, f.position`, s.db.NewValues(&cursors)).Scan(ctx, &entries)
	if err != nil {
		return nil, fmt.Errorf("read the feed after the cursors of %d webhooks: %w", len(all), err)
	}
	return entries, nil
}

// chunkDispatches groups endpoints into transactions of up to dispatchWrite deliveries.
func chunkDispatches(all []*endpointDispatch) (chunks [][]*endpointDispatch) {
	size := dispatchWrite
	for _, e := range all {
		rows := max(1, len(e.deliveries)) // the cursor of an endpoint without a delivery is written too
		if size += rows; size > dispatchWrite {
			chunks, size = append(chunks, nil), rows
		}
		last := len(chunks) - 1
		chunks[last] = append(chunks[last], e)
	}
	return chunks
}

// writeDispatches writes the dispatches of endpoints in one transaction. If it fails it writes each of them in its own. It returns
// the endpoints with new deliveries that the holder sends to, and notes the accounts that have more events.
func (s *Store) writeDispatches(ctx context.Context, chunk []*endpointDispatch, lease Lease, behind map[uuid.UUID]bool) (leased []LeasedWebhook, err error) {
	var written []*endpointDispatch
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) (err error) {
		if written, err = tx.lockUnchanged(ctx, chunk); err != nil || len(written) == 0 {
			return err
		}
		var deliveries []deliveryRow
		for _, e := range written {
			deliveries = append(deliveries, e.deliveries...)
		}
		if err = tx.insertDeliveries(ctx, deliveries); err != nil {
			return err
		}
		leased, err = tx.moveCursors(ctx, written, lease)
		return err
	})
	switch {
	case err == nil:
		for _, e := range written {
			behind[e.AccountID] = behind[e.AccountID] || len(e.entries) == e.limit
		}
		return leased, nil
	case len(chunk) == 1:
		return nil, fmt.Errorf("webhook %s: %w", chunk[0].ID, err)
	case ctx.Err() != nil || postgres.Unavailable(err) && !postgres.Busy(err):
		return nil, err
	}
	leased, err = nil, nil
	for n := range chunk {
		one, err2 := s.writeDispatches(ctx, chunk[n:n+1], lease, behind)
		leased, err = append(leased, one...), errors.Join(err, err2)
	}
	return leased, err
}

// lockUnchanged locks the endpoints that nobody has locked or changed since they were read, in the order of their ids.
func (tx Tx) lockUnchanged(ctx context.Context, chunk []*endpointDispatch) ([]*endpointDispatch, error) {
	type readRow struct {
		ID        uuid.UUID `bun:"id,type:uuid"`
		Cursor    int64     `bun:"cursor,type:bigint"`
		UpdatedAt time.Time `bun:"updated_at,type:timestamptz"`
	}
	read := make([]readRow, len(chunk))
	for n, e := range chunk {
		read[n] = readRow{e.ID, e.Cursor, e.UpdatedAt}
	}
	var locked []uuid.UUID
	err := tx.db.NewRaw(`WITH read (id, cursor, updated_at) AS (?0) SELECT webhooks.id FROM webhooks JOIN read ON read.id = webhooks.id
		WHERE webhooks.enabled AND webhooks.cursor = read.cursor AND webhooks.updated_at = read.updated_at
		ORDER BY webhooks.id FOR NO KEY UPDATE OF webhooks SKIP LOCKED`, tx.db.NewValues(&read)).Scan(ctx, &locked)
	if err != nil {
		return nil, fmt.Errorf("lock %d webhooks: %w", len(chunk), err)
	}
	isLocked := make(map[uuid.UUID]bool, len(locked))
	for _, id := range locked {
		isLocked[id] = true
	}
	return slices.DeleteFunc(slices.Clone(chunk), func(e *endpointDispatch) bool { return !isLocked[e.ID] }), nil
}

// insertDeliveries writes new deliveries, and restarts existing ones, as in a replay, in the order in which the results of attempts
// are written, which prevents deadlocks.
func (tx Tx) insertDeliveries(ctx context.Context, rows []deliveryRow) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b deliveryRow) int {
		return cmp.Or(bytes.Compare(a.WebhookID[:], b.WebhookID[:]), bytes.Compare(a.EventID[:], b.EventID[:]))
	})
	_, err := tx.db.NewInsert().Model(&rows).On("CONFLICT (webhook_id, event_id) DO UPDATE").
		Set("position = excluded.position, status = excluded.status, attempts = 0, next_attempt_at = excluded.next_attempt_at").
		Set("response_status = NULL, error = NULL, updated_at = excluded.updated_at").Returning("NULL").Exec(ctx)
	if err != nil {
		return fmt.Errorf("insert %d deliveries: %w", len(rows), err)
	}
	return nil
}

// moveCursors moves the cursors of endpoints past their dispatches and takes the free leases of those with new deliveries
// that are not failing. It returns the endpoints with new deliveries that the holder sends to.
func (tx Tx) moveCursors(ctx context.Context, all []*endpointDispatch, lease Lease) (leased []LeasedWebhook, err error) {
	type movedRow struct {
		ID     uuid.UUID `bun:"id,type:uuid"`
		Cursor int64     `bun:"cursor,type:bigint"`
		Due    bool      `bun:"due,type:boolean"`
		// PacedUntil is the zero time for an endpoint that has had no delivery.
		PacedUntil time.Time `bun:"paced_until,type:timestamptz,nullzero"`
	}
	moved := make([]movedRow, len(all))
	for n, e := range all {
		moved[n] = movedRow{e.ID, e.entries[len(e.entries)-1].Position, len(e.deliveries) > 0, e.pace.Until}
	}
	var rows []struct {
		LeasedWebhook
		Leased bool
	}
	err = tx.db.NewRaw(`WITH moved (id, cursor, due, paced_until) AS (?0) UPDATE webhooks SET cursor = moved.cursor, paced_until = moved.paced_until,
			lease_holder = CASE WHEN moved.due AND failing_since IS NULL AND ?2 > 0 AND `+freeLease+` THEN ?1 ELSE lease_holder END,
			lease_until = CASE WHEN moved.due AND failing_since IS NULL AND ?2 > 0 AND `+freeLease+` THEN clock_timestamp() + ?2 * interval '1 millisecond' ELSE lease_until END
		FROM moved WHERE webhooks.id = moved.id
		RETURNING webhooks.id, account_id, failing_since IS NOT NULL AS failing, moved.due AND lease_holder = ?1 AS leased`,
		tx.db.NewValues(&moved), lease.Holder, lease.TTL.Milliseconds()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("move the cursors of %d webhooks: %w", len(moved), err)
	}
	for _, row := range rows {
		if row.Leased {
			leased = append(leased, row.LeasedWebhook)
		}
	}
	return leased, nil
}
