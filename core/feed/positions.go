package feed

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

// Maximum number of events to which one round assigns positions: few while clients wait, many after a backlog.
const (
	feedRound   = 1_000
	feedBacklog = 5_000
)

// The feed is a total order of all events. An event gets no position when it is written: transactions do not commit in the order
// of their numbers, and a reader would miss a late one. Rounds assign positions later, one round at a time under the lock of
// feed_state, so that all rows up to last_position are visible to every transaction that sees last_position. Any core may run a
// round; no core keeps state in memory.
//
// feed_state.unread are the ids of events that have no position and may still appear. A gap among them belongs to a transaction
// that is in progress or was rolled back. A gap is removed once no transaction can fill it any more: the column xid of an event
// is evaluated before its id and sequences assign ids in order (CACHE 1), so every transaction that can write an id up to the
// highest that was seen already has its transaction id at that time. A transaction id that is assigned after that, checked_xid,
// is above all of them. Once a snapshot's xmin has reached it, all of them have ended, and an id that this snapshot does not show
// never appears. The snapshot's own xmax is no such bound, because it is only above the transactions that have ended.
//
// Transaction ids are valid only in their cluster (postgres.ClusterIdentity); in another cluster checked_xid is recorded again. Positions
// do not depend on it: they are at least the database's clock in microseconds, so that positions after a restore, or after the
// promotion of a standby that had not replayed everything, are above all that a reader has seen.

// A position is handed out, in a page, in a cursor or by a webhook, only once a later commit has ended (Confirm): the rows of a commit in
// doubt are visible, and a failover loses them, see postgres.DB.Confirm.

// Status is the state of the feed.
type Status struct {
	// LastPosition is the newest assigned position, 0 for none.
	LastPosition int64
	// Unread is set if an event has no position yet.
	Unread bool
}

// Status reports whether an event has no position yet. It writes nothing, and if no id was assigned since the last round it
// does not read events.
func (s *Store) Status(ctx context.Context) (Status, error) {
	var status struct {
		LastPosition int64
		Unread       bool
	}
	err := s.db.NewRaw(`SELECT last_position, lower(unread) <= (SELECT last_value FROM events_id_seq) AS unread FROM feed_state`).
		Scan(ctx, &status)
	if err == nil && status.Unread {
		err = s.db.NewRaw(`SELECT EXISTS (SELECT FROM unnest(unread) AS span CROSS JOIN LATERAL (
			SELECT FROM events WHERE id >= lower(span) AND id < coalesce(upper(span), 9223372036854775807) ORDER BY id LIMIT 1
		) AS waiting) FROM feed_state`).Scan(ctx, &status.Unread)
	}
	if err != nil {
		return Status{}, fmt.Errorf("read the state of the feed: %w", err)
	}
	return Status(status), nil
}

// Round is the result of a round.
type Round struct {
	// Events is how many events got a position.
	Events int
	// More is set if the round was full, so that more events may wait.
	More bool
	// Skipped is set if another core is running a round.
	Skipped bool
	// last is the newest position after the round.
	last int64
}

// AssignPositions runs one round: it assigns positions to the waiting events in the order of their ids. If another core runs a
// round, it waits for it, or does nothing if wait is false.
func (s *Store) AssignPositions(ctx context.Context, wait, behind bool) (Round, error) {
	return s.AssignPositionsIn(ctx, postgres.NoTurn, wait, behind)
}

// AssignPositionsIn is AssignPositions in a turn.
func (s *Store) AssignPositionsIn(ctx context.Context, turn postgres.Turn, wait, behind bool) (round Round, err error) {
	// The round continues if this request ends, because other requests wait for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postgres.WriteTimeout)
	defer cancel()
	limit := feedRound
	if behind {
		limit = feedBacklog
	}
	var delays []float64
	err = s.InTx(ctx, turn, func(ctx context.Context, tx Tx) error {
		state, err := tx.lockFeed(ctx, wait)
		if errors.Is(err, sql.ErrNoRows) {
			round.Skipped = true
			return nil
		}
		if err != nil {
			return err
		}
		round, delays, err = tx.assignPositions(ctx, state, limit)
		return err
	})
	if err != nil {
		return Round{}, fmt.Errorf("assign positions to events: %w", err)
	}
	s.setConfirmed(round.last)
	for _, delay := range delays {
		s.metrics.delay.Observe(delay)
	}
	s.metrics.events.Add(float64(len(delays)))
	return round, nil
}

// feedState is the row of feed_state under its lock.
type feedState struct {
	// Base is below every position of this round.
	Base   int64
	Unread string
	// CheckedID and CheckedXid are from an earlier round, zero if this cluster has none.
	CheckedID  int64  `bun:"checked_id"`
	CheckedXid string `bun:"checked_xid"`
	// Highest, Xid and Cluster are the current values, which the next round may use.
	Highest int64
	Xid     string
	Cluster string
}

// lockFeed locks feed_state and reads it. It returns sql.ErrNoRows while another transaction has the lock, unless it is to wait.
func (tx Tx) lockFeed(ctx context.Context, wait bool) (state feedState, err error) {
	// This statement runs before the transaction has an id, so that its id is above those of all transactions that can write an
	// id up to the highest.
	err = tx.db.NewRaw(`SELECT (SELECT max(lower(span)) - 1 FROM unnest(unread) AS span) AS highest, `+postgres.ClusterIdentity+` AS cluster FROM feed_state`).
		Scan(ctx, &state)
	if err != nil {
		return state, err
	}
	lock := "FOR UPDATE"
	if !wait {
		lock += " SKIP LOCKED"
	}
	err = tx.db.NewRaw(`SELECT greatest(last_position, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS base, unread::text AS unread,
		CASE WHEN cluster = ?0 THEN checked_id ELSE 0 END AS checked_id,
		CASE WHEN cluster = ?0 THEN checked_xid::text ELSE '0' END AS checked_xid, pg_current_xact_id()::text AS xid
		FROM feed_state `+lock, state.Cluster).Scan(ctx, &state)
	return state, err
}

// assignPositions writes the rows of the feed. A full round leaves gaps above its last event, because it has not read further. The
// limits of the lateral parts make the planner look each event up, and the intent of one without an environment, instead of scanning
// the tables for a full round.
func (tx Tx) assignPositions(ctx context.Context, state feedState, limit int) (round Round, delays []float64, err error) {
	var done struct {
		Taken  int
		Delays []float64 `bun:",array"`
	}
	err = tx.db.NewRaw(`WITH taken AS MATERIALIZED (
			SELECT waiting.* FROM unnest(?0::int8multirange) AS span CROSS JOIN LATERAL (
				SELECT id, account_id, transfer_id, environment, trigger, to_status, sequence, occurred_at FROM events
				WHERE id >= lower(span) AND id < coalesce(upper(span), 9223372036854775807) ORDER BY id LIMIT ?1
			) AS waiting ORDER BY waiting.id LIMIT ?1
		), added AS (
			INSERT INTO feed (position, account_id, environment, type, event_id, sequence, occurred_at, id)
			SELECT ?2 + row_number() OVER (ORDER BY taken.id), taken.account_id,
				intent.environment,
				`+eventTypeOf+`,
				taken.id, taken.sequence, occurred_at, (`+eventIDAt+`)
			FROM taken CROSS JOIN LATERAL (
				SELECT taken.environment WHERE taken.environment IS NOT NULL UNION ALL
				(SELECT environment FROM transfers WHERE taken.environment IS NULL AND account_id = taken.account_id AND id = taken.transfer_id LIMIT 1)
			) AS intent
			RETURNING occurred_at
		), seen AS (
			SELECT count(*) AS n, max(id) AS highest, coalesce(range_agg(int8range(id, id, '[]')), '{}') AS ids,
				pg_snapshot_xmin(pg_current_snapshot()) >= ?4::xid8 AS settled
			FROM taken
		), advanced AS (
			UPDATE feed_state SET last_position = ?2 + n,
				unread = unread - ids - CASE WHEN settled
					THEN int8multirange(int8range(0, CASE WHEN n < ?1 THEN ?3 ELSE least(?3, highest) END, '[]')) ELSE '{}' END,
				checked_id = CASE WHEN settled THEN ?5 ELSE checked_id END,
				checked_xid = CASE WHEN settled THEN ?6::xid8 ELSE checked_xid END,
				cluster = CASE WHEN settled THEN ?7 ELSE cluster END
			FROM seen
		)
		SELECT n AS taken, ARRAY(SELECT extract(epoch FROM clock_timestamp() - occurred_at)::float8 FROM added) AS delays FROM seen`,
		state.Unread, limit, state.Base, state.CheckedID, state.CheckedXid, state.Highest, state.Xid, state.Cluster).Scan(ctx, &done)
	if err != nil {
		return Round{}, nil, err
	}
	return Round{Events: len(done.Delays), More: done.Taken == limit, last: state.Base + int64(done.Taken)}, done.Delays, nil
}

// eventTypeOf is the type of an intent's event.
const eventTypeOf = `'transfer.' || CASE taken.trigger WHEN 'reorg' THEN 'reorganized' WHEN 'refundable' THEN 'refundable' WHEN 'update' THEN 'updated'
	ELSE taken.to_status END`

// eventIDAt is the id of an intent's event, a UUIDv8 (RFC 9562, section 5.8): a hash of the intent, the sequence and the time of the
// event. So an event that gets its position again after a restore keeps its id, and another event in its place gets another id.
const eventIDAt = `overlay(overlay(left(encode(sha256(convert_to(concat_ws('/', taken.transfer_id, taken.sequence,
	(extract(epoch FROM taken.occurred_at) * 1000000)::bigint), 'UTF8')), 'hex'), 32) PLACING '8' FROM 13) PLACING '8' FROM 17)::uuid`

// EventIDs reads the ids of an intent's newest events, whether they have a position or not.
func (s *Store) EventIDs(ctx context.Context, accountID, transferID uuid.UUID, limit int) (ids []uuid.UUID, err error) {
	err = s.db.NewRaw("SELECT ("+eventIDAt+") FROM events AS taken WHERE account_id = ? AND transfer_id = ? ORDER BY taken.id DESC LIMIT ?",
		accountID, transferID, limit).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read the ids of the events of transfer %s: %w", transferID, err)
	}
	return ids, nil
}

// LatestPosition is the newest assigned position. All events with a position are at or below it.
func (s *Store) LatestPosition(ctx context.Context) (position int64, err error) {
	if err := s.db.NewRaw("SELECT last_position FROM feed_state").Scan(ctx, &position); err != nil {
		return 0, fmt.Errorf("read the newest position of the feed: %w", err)
	}
	return position, s.Confirm(ctx, position)
}

// Confirm waits until the events up to a position that was read are as durable as a commit. This takes a commit only if another core's
// round has assigned the position, or one whose outcome is unknown, and no event after it was confirmed.
func (s *Store) Confirm(ctx context.Context, position int64) error {
	if position <= s.confirmed.Load() {
		return nil
	}
	if err := s.db.Confirm(ctx); err != nil {
		return err
	}
	s.setConfirmed(position)
	return nil
}

func (s *Store) setConfirmed(position int64) {
	for known := s.confirmed.Load(); position > known && !s.confirmed.CompareAndSwap(known, position); known = s.confirmed.Load() {
	}
}

// appendedEvent is an event that is not an intent's, as a row of VALUES.
type appendedEvent struct {
	Ordinal     int                 `bun:"ordinal,type:integer"`
	AccountID   uuid.UUID           `bun:"account_id,type:uuid"`
	Environment network.Environment `bun:"environment,type:text"`
	Type        Type                `bun:"type,type:text"`
	OccurredAt  time.Time           `bun:"occurred_at,type:timestamptz"`
	Data        string              `bun:"data,type:text"`
}

// AppendEvent adds an event that is not an intent's to the feed, when the rest of the transaction has been written. data is written as JSON.
func (tx Tx) AppendEvent(owner Owner, kind Type, at time.Time, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("write the event %s: %w", kind, err)
	}
	*tx.appended = append(*tx.appended, appendedEvent{len(*tx.appended) + 1, owner.AccountID, owner.Environment, kind, at, string(text)})
	return nil
}

// writeAppended writes the events of AppendEvent in one statement, which takes the lock of the feed until the transaction ends.
func (tx Tx) writeAppended(ctx context.Context) error {
	added := *tx.appended
	if len(added) == 0 {
		return nil
	}
	_, err := tx.db.NewRaw(`WITH added (ordinal, account_id, environment, type, occurred_at, data) AS (?0), advanced AS (
			UPDATE feed_state SET last_position = ?1 + greatest(last_position, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
			RETURNING last_position
		)
		INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
		SELECT last_position - ?1 + ordinal, account_id, environment, type, occurred_at, data::json FROM added, advanced`,
		tx.db.NewValues(&added), len(added)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("append %d events to the feed: %w", len(added), err)
	}
	return nil
}

// Entry is the place of an event in the feed.
type Entry struct {
	Position int64
	Owner    Owner
}

// Entries reads the places of up to limit events above a position, in their order.
func (s *Store) Entries(ctx context.Context, after int64, limit int) ([]Entry, error) {
	var rows []struct { // not feedRow, which is eight times as large
		Position    int64
		AccountID   uuid.UUID
		Environment network.Environment
	}
	err := s.db.NewRaw("SELECT position, account_id, environment FROM feed WHERE position > ? ORDER BY position LIMIT ?", after, limit).
		Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the feed after %d: %w", after, err)
	}
	entries := make([]Entry, len(rows))
	for n, row := range rows {
		entries[n] = Entry{row.Position, Owner{AccountID: row.AccountID, Environment: row.Environment}}
	}
	return entries, nil
}
