package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// ErrCursorExpired means that events after a cursor have been removed.
var ErrCursorExpired = errors.New("events after the cursor are no longer kept")

// EventPage is a part of an owner's feed.
type EventPage struct {
	// Events are in the order of the feed.
	Events []Event
	// Next is the position after which the next page starts.
	Next int64
	// End means that the owner has no event after Next.
	End bool
}

// PrunedTo is the newest position of an owner's feed that was removed, 0 for none.
const PrunedTo = `SELECT coalesce((SELECT position FROM feed_pruned WHERE account_id = ?0 AND environment = ?1), 0)`

// EventPage reads up to limit events of an owner above a position that match the filter, among the next postgres.LongScan events. 0 is the
// oldest event that is kept. It returns ErrFeedCursorExpired if the events after a position have been removed.
func (s *Store) EventPage(ctx context.Context, owner Owner, after int64, filter Filter, limit int) (page EventPage, err error) {
	err = s.db.LongLists.ReadPage(ctx, owner.AccountID, limit, filter.Types() != nil, func(ctx context.Context, scan int) (incomplete bool, err error) {
		var positions []int64
		page, positions, err = s.scanFeed(ctx, owner, after, filter, limit, scan)
		if incomplete = !page.End && len(positions) < limit; incomplete && scan < postgres.LongScan || err != nil {
			return incomplete, err
		}
		// The account is a literal, so that the planner reads one partition of the events and one of the intents.
		events, err := s.eventsAt(ctx, positions, s.db.NewRaw("?", owner.AccountID))
		for _, position := range positions {
			if e, kept := events[position]; kept {
				page.Events = append(page.Events, e)
			}
		}
		return incomplete, err
	})
	if err == nil {
		err = s.Confirm(ctx, page.Next)
	}
	if err != nil {
		return EventPage{}, err
	}
	return page, nil
}

// scanFeed returns the positions of up to limit events that match the filter among the next scan events, and the page without them.
func (s *Store) scanFeed(ctx context.Context, owner Owner, after int64, filter Filter, limit, scan int) (page EventPage, positions []int64, err error) {
	condition, args := "true", []any(nil)
	if types := filter.Types(); types != nil {
		condition, args = "type IN (?)", []any{bun.List(types)}
	}
	index := s.db.NewSelect().Table("feed").Column("position").Where("account_id = ?", owner.AccountID).Where("environment = ?", owner.Environment).
		Where("position > ?", after)
	list := postgres.ListScan{Index: postgres.Matches(index, condition, args...), Order: "position", Rows: limit, Scan: scan}
	var rows []struct {
		LastPosition, PrunedTo int64
		Position               int64 `bun:",nullzero"`
		Matches                bool  `bun:",nullzero"`
		Ordinal                int   `bun:",nullzero"`
	}
	// One statement, so that the newest position and the rows come from one snapshot.
	err = list.InIndexOrder(ctx, s.db, func(ctx context.Context, db bun.IDB) error {
		return db.NewRaw(`SELECT last_position, (`+PrunedTo+`) AS pruned_to, page.position, page.matches, page.ordinal
			FROM feed_state LEFT JOIN (?2) AS page ON true ORDER BY page.position`, owner.AccountID, owner.Environment, list.Query(db)).Scan(ctx, &rows)
	})
	if err != nil {
		return EventPage{}, nil, fmt.Errorf("read the feed of account %s: %w", owner.AccountID, err)
	}
	first := rows[0] // the state always has a row
	if after > 0 && after < first.PrunedTo {
		return EventPage{}, nil, ErrCursorExpired
	}
	scanned := make([]postgres.ScannedRow[int64], len(rows))
	for n, row := range rows {
		scanned[n] = postgres.ScannedRow[int64]{Key: row.Position, Matches: row.Matches, Ordinal: row.Ordinal}
	}
	positions, last := postgres.ScannedPage(list, scanned)
	if last == nil {
		return EventPage{Next: max(after, first.LastPosition), End: true}, positions, nil
	}
	return EventPage{Next: *last}, positions, nil
}

// EventsAt reads the events at positions of the feed, of all accounts. It omits events that are no longer kept.
func (s *Store) EventsAt(ctx context.Context, positions []int64) (map[int64]Event, error) {
	return s.eventsAt(ctx, positions, s.db.NewRaw("feed.account_id"))
}

// eventsAt reads the events at positions whose account is an SQL expression. The limits make the planner look each event and
// intent up.
func (s *Store) eventsAt(ctx context.Context, positions []int64, account *bun.RawQuery) (map[int64]Event, error) {
	if len(positions) == 0 {
		return nil, nil
	}
	var rows []feedRow
	err := s.db.NewRaw(`SELECT feed.position, feed.id, feed.account_id, feed.environment, feed.type, feed.sequence, feed.occurred_at, feed.data,
			events.from_status, events.to_status, events.hash, events.failure, events.tx_hash, events.block_number, events.found,
			events.simulated,
			`+intentColumns+`
		FROM feed LEFT JOIN LATERAL (SELECT * FROM events WHERE account_id = ?0 AND id = feed.event_id LIMIT 1) AS events ON true
		LEFT JOIN LATERAL (SELECT * FROM transfers WHERE account_id = ?0 AND id = events.transfer_id LIMIT 1) AS transfers ON true
		`+laterUpdate("feed.sequence")+`
		WHERE feed.position IN (?1)`, account, bun.List(positions)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read %d events: %w", len(positions), err)
	}
	events := make(map[int64]Event, len(rows))
	for _, row := range rows {
		if row.TransferID == uuid.Nil && row.Data == nil {
			continue // its intent has been removed
		}
		if events[row.Position], err = row.event(); err != nil {
			return nil, fmt.Errorf("read the event at %d: %w", row.Position, err)
		}
	}
	return events, nil
}

// intentColumns are what an event shows of its intent.
const intentColumns = `transfers.id AS transfer_id, transfers.type AS transfer_type,
	transfers.order_id, transfers.source_chain, transfers.source_account, transfers.source_token, transfers.source_amount,
	transfers.destination_chain, transfers.destination_account, transfers.destination_token, transfers.destination_amount,
	transfers.deadline, transfers.batch_id, transfers.signing, transfers.created_at,
	CASE WHEN later.sequence IS NULL THEN transfers.reference ELSE later.reference END AS reference,
	CASE WHEN later.sequence IS NULL THEN transfers.labels ELSE later.labels END AS labels`

// laterUpdate joins the first update of an intent after one of its events, which has what the intent was called until then.
func laterUpdate(sequence string) string {
	return `LEFT JOIN LATERAL (SELECT * FROM transfer_updates WHERE account_id = ?0 AND transfer_id = transfers.id AND sequence > ` + sequence + `
		ORDER BY sequence LIMIT 1) AS later ON true`
}

// feedRow is a row of the feed with what its event and its intent say.
type feedRow struct {
	Position    int64
	ID          uuid.UUID
	AccountID   uuid.UUID
	Environment network.Environment
	Type        Type
	Sequence    int `bun:",nullzero"`
	OccurredAt  time.Time
	Data        json.RawMessage `bun:",nullzero"`

	From    transfer.Status  `bun:"from_status,nullzero"`
	To      transfer.Status  `bun:"to_status,nullzero"`
	Hash    string           `bun:",nullzero"`
	Failure transfer.Failure `bun:",nullzero"`

	TxHash      []byte
	BlockNumber *uint64
	Found       string `bun:",nullzero"`
	Simulated   bool   `bun:",nullzero"`

	TransferID         uuid.UUID     `bun:",nullzero"`
	TransferType       transfer.Type `bun:",nullzero"`
	OrderID            []byte
	SourceChain        string             `bun:",nullzero"`
	SourceAccount      string             `bun:",nullzero"`
	SourceToken        string             `bun:",nullzero"`
	SourceAmount       string             `bun:",nullzero"`
	DestinationChain   string             `bun:",nullzero"`
	DestinationAccount string             `bun:",nullzero"`
	DestinationToken   string             `bun:",nullzero"`
	DestinationAmount  string             `bun:",nullzero"`
	Deadline           time.Time          `bun:",nullzero"`
	Reference          string             `bun:",nullzero"`
	Labels             wire.Labels        `bun:",nullzero"`
	BatchID            uuid.UUID          `bun:",nullzero"`
	Signing            wire.SigningScheme `bun:",nullzero"`
	CreatedAt          time.Time          `bun:",nullzero"`
}

func (r feedRow) event() (Event, error) {
	e := Event{
		ID: ID(r.ID), Type: r.Type, Position: r.Position, AccountID: r.AccountID, Environment: r.Environment, At: r.OccurredAt.UTC(),
		Sequence: r.Sequence, Data: r.Data,
	}
	if r.Data != nil {
		return e, nil
	}
	source, err := caip.ParseChainID(r.SourceChain)
	if err != nil {
		return e, err
	}
	destination, err := caip.ParseChainID(r.DestinationChain)
	if err != nil {
		return e, err
	}
	e.Transfer = &Transition{From: r.From, To: r.To, Failure: r.Failure, Simulated: r.Simulated, Summary: transfer.Summary{
		ID: r.TransferID, Environment: r.Environment, Type: r.TransferType, Status: r.To, OrderID: [32]byte(r.OrderID),
		Source:      transfer.SummaryLeg{Chain: source, Account: r.SourceAccount, Token: r.SourceToken, Amount: r.SourceAmount},
		Destination: transfer.SummaryLeg{Chain: destination, Account: r.DestinationAccount, Token: r.DestinationToken, Amount: r.DestinationAmount},
		Deadline:    r.Deadline.UTC(), Reference: r.Reference, Labels: r.Labels, BatchID: r.BatchID, Signing: r.Signing, Hash: r.Hash,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: e.At,
	}}
	if r.Type == TypeTransferUpdated {
		e.Transfer.Failure = "" // that of the intent, which an earlier event has told
	} else if r.Failure != "" && r.TxHash != nil {
		e.Transfer.FailureReason = e.Transfer.Summary.Explain(r.Failure, r.failed(source))
	}
	return e, nil
}

// failed is the attempt that failed, which is on the source chain.
func (r feedRow) failed(source caip.ChainID) *transfer.Transaction {
	t := &transfer.Transaction{Chain: source, Hash: common.Hash(r.TxHash), Found: r.Found}
	if r.BlockNumber != nil {
		t.Block = &transfer.Block{Number: *r.BlockNumber}
	}
	return t
}
