package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/event"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// feedScan is how many rows of a feed one reading looks at for those that its filter selects.
const feedScan = 10_000

// ErrFeedCursorExpired says that events after a cursor have been removed.
var ErrFeedCursorExpired = errors.New("events after the cursor are no longer kept")

// EventPage is a part of an owner's feed.
type EventPage struct {
	// Events are in the order of the feed.
	Events []event.Event
	// Next is the position after which the next page begins.
	Next int64
	// End means that the owner has no event after Next.
	End bool
}

// EventPage reads up to limit events of an owner above a position that the filter selects, of the next feedScan events. 0 is the
// beginning of what is kept. It returns ErrFeedCursorExpired for a position whose next events have been removed.
func (s *Store) EventPage(ctx context.Context, owner event.Owner, after int64, filter event.Filter, limit int) (EventPage, error) {
	filtered := filter.Types() != nil
	scan := limit
	if filtered {
		scan = feedScan
	}
	scanned := s.db.NewRaw(`SELECT * FROM feed WHERE account_id = ? AND environment = ?
		AND position > greatest(?, (SELECT pruned_to FROM feed_state)) ORDER BY position LIMIT ?`, owner.AccountID, owner.Environment, after, scan)
	page := s.db.NewSelect().TableExpr("(?) AS scanned", scanned).OrderExpr("position").Limit(int64(limit))
	if filtered {
		page.Where("type IN (?)", bun.List(filter.Types()))
	}
	var rows []feedRow
	// One statement, so that the newest position is of the snapshot that the rows are of.
	err := s.db.NewRaw(`WITH page AS MATERIALIZED (?0)
		SELECT last_position, pruned_to, CASE WHEN ?1 AND (SELECT count(*) FROM page) < ?2 THEN (
			SELECT position FROM feed WHERE account_id = ?3 AND environment = ?4
			AND position > greatest(?5, (SELECT pruned_to FROM feed_state)) ORDER BY position OFFSET ?6 LIMIT 1) END AS scanned_to, `+feedColumns+`
		FROM feed_state LEFT JOIN page ON true ?7 ORDER BY page.position`,
		page, filtered, limit, owner.AccountID, owner.Environment, after, scan-1, s.feedSources(owner)).Scan(ctx, &rows)
	if err != nil {
		return EventPage{}, fmt.Errorf("read the events of account %s: %w", owner.AccountID, err)
	}
	first := rows[0] // of the state there is always a row
	if after > 0 && after < first.PrunedTo {
		return EventPage{}, ErrFeedCursorExpired
	}
	found := rows
	if first.Position == 0 {
		found = nil
	}
	result := EventPage{Next: max(after, first.LastPosition), End: true}
	switch {
	case len(found) == limit:
		result.Next, result.End = found[limit-1].Position, false
	case first.ScannedTo > 0:
		result.Next, result.End = first.ScannedTo, false
	}
	result.Events, err = feedEvents(owner, found)
	return result, err
}

// EventsAt reads the events at positions of the feed, whoever owns them. One that is not kept any more is left out.
func (s *Store) EventsAt(ctx context.Context, positions []int64) (map[int64]event.Event, error) {
	if len(positions) == 0 {
		return nil, nil
	}
	var rows []feedRow
	err := s.db.NewRaw(`SELECT page.account_id, page.environment, `+feedColumns+` FROM feed AS page
		LEFT JOIN LATERAL (SELECT * FROM events WHERE account_id = page.account_id AND id = page.event_id LIMIT 1) AS events ON true
		LEFT JOIN LATERAL (SELECT * FROM transfers WHERE account_id = page.account_id AND id = events.transfer_id LIMIT 1) AS transfers ON true
		WHERE page.position IN (?)`, bun.List(positions)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read %d events: %w", len(positions), err)
	}
	events := make(map[int64]event.Event, len(rows))
	for _, row := range rows {
		found, err := feedEvents(event.Owner{AccountID: row.AccountID, Environment: row.Environment}, []feedRow{row})
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			events[e.Position] = e
		}
	}
	return events, nil
}

// feedRow is a row of the feed with what its event and its intent say.
type feedRow struct {
	LastPosition int64
	PrunedTo     int64
	ScannedTo    int64 `bun:",nullzero"`

	Position    int64               `bun:",nullzero"`
	AccountID   uuid.UUID           `bun:",nullzero"`
	Environment network.Environment `bun:",nullzero"`
	Type        event.Type          `bun:",nullzero"`
	Sequence    int                 `bun:",nullzero"`
	OccurredAt  time.Time           `bun:",nullzero"`
	Data        json.RawMessage     `bun:",nullzero"`

	From    transfer.Status  `bun:"from_status,nullzero"`
	To      transfer.Status  `bun:"to_status,nullzero"`
	Hash    string           `bun:",nullzero"`
	Failure transfer.Failure `bun:",nullzero"`

	TransferID        uuid.UUID     `bun:",nullzero"`
	TransferType      transfer.Type `bun:",nullzero"`
	OrderID           []byte
	SourceChain       string    `bun:",nullzero"`
	SourceAmount      string    `bun:",nullzero"`
	DestinationAmount string    `bun:",nullzero"`
	Reference         string    `bun:",nullzero"`
	CreatedAt         time.Time `bun:",nullzero"`
}

const feedColumns = `page.position, page.type, page.sequence, page.occurred_at, page.data, events.from_status, events.to_status, events.hash,
	events.failure, transfers.id AS transfer_id, transfers.type AS transfer_type, transfers.order_id, transfers.source_chain,
	transfers.source_amount, transfers.destination_amount, transfers.reference, transfers.created_at`

// feedSources leads from the rows of page to their events and intents. The account is written out, as it names one partition of both,
// and the limits have the planner look each of them up.
func (s *Store) feedSources(owner event.Owner) *bun.RawQuery {
	return s.db.NewRaw(`LEFT JOIN LATERAL (SELECT * FROM events WHERE account_id = ?0 AND id = page.event_id LIMIT 1) AS events ON true
		LEFT JOIN LATERAL (SELECT * FROM transfers WHERE account_id = ?0 AND id = events.transfer_id LIMIT 1) AS transfers ON true`, owner.AccountID)
}

// feedEvents leaves out the events of intents that have been removed.
func feedEvents(owner event.Owner, rows []feedRow) ([]event.Event, error) {
	events := make([]event.Event, 0, len(rows))
	for _, row := range rows {
		if row.TransferID == uuid.Nil && row.Data == nil {
			continue
		}
		e, err := row.event(owner)
		if err != nil {
			return nil, fmt.Errorf("read the event at %d: %w", row.Position, err)
		}
		events = append(events, e)
	}
	return events, nil
}

func (r feedRow) event(owner event.Owner) (event.Event, error) {
	e := event.Event{
		Type: r.Type, Position: r.Position, AccountID: owner.AccountID, Environment: owner.Environment, At: r.OccurredAt.UTC(),
		Sequence: r.Sequence, Data: r.Data,
	}
	if r.Data != nil {
		var subject struct{ ID uuid.UUID }
		err := json.Unmarshal(r.Data, &subject)
		e.ID = event.NewID(subject.ID, r.Position)
		return e, err
	}
	chain, err := caip.ParseChainID(r.SourceChain)
	if err != nil {
		return e, err
	}
	e.ID = event.NewID(r.TransferID, int64(r.Sequence))
	e.Transfer = &event.Transition{From: r.From, To: r.To, Failure: r.Failure, Summary: transfer.Summary{
		ID: r.TransferID, Type: r.TransferType, Status: r.To, OrderID: [32]byte(r.OrderID), Chain: chain,
		SourceAmount: r.SourceAmount, DestinationAmount: r.DestinationAmount, Reference: r.Reference, Hash: r.Hash,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: e.At,
	}}
	return e, nil
}
