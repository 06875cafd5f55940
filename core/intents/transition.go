package intents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// Transition applies a command to one of an account's intents and writes the change and its event in one transaction. It returns
// the updated intent; ErrTransferNotFound; or an error that wraps transfer.ErrTransition with the unchanged intent.
func (s *Store) Transition(ctx context.Context, accountID, id uuid.UUID, command transfer.Command) (*transfer.Intent, error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	var intent *transfer.Intent
	var event transfer.Event
	err := s.InTx(ctx, postgres.TurnOf(id), func(ctx context.Context, tx Tx) (err error) {
		if intent, err = tx.LockTransfer(ctx, accountID, id); err != nil {
			return err
		}
		event, err = tx.Apply(ctx, intent, command)
		return err
	})
	if err != nil && !errors.Is(err, transfer.ErrTransition) {
		return nil, err
	}
	if err == nil {
		s.metrics.countEvents([]transfer.Event{event})
	}
	return intent, err
}

// LockTransfer reads one of an account's intents and locks it until the transaction ends. It returns ErrTransferNotFound for an
// intent the account does not have.
func (tx Tx) LockTransfer(ctx context.Context, accountID, id uuid.UUID) (*transfer.Intent, error) {
	return readIntent(ctx, func(row *TransferRow) *bun.SelectQuery {
		return tx.db.NewSelect().Model(row).Where("id = ? AND account_id = ?", id, accountID).For("UPDATE")
	})
}

// Apply applies a command to an intent that LockTransfer has locked, and writes the change and its event. If the intent's status
// does not allow the command, it returns an error that wraps transfer.ErrTransition and the intent is unchanged.
func (tx Tx) Apply(ctx context.Context, intent *transfer.Intent, command transfer.Command) (transfer.Event, error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return transfer.Event{}, err
	}
	event, err := intent.Apply(command, now)
	if err != nil {
		return transfer.Event{}, err
	}
	return event, tx.SaveTransitions(ctx, []*transfer.Intent{intent}, []transfer.Event{event})
}

// TransferKey is the primary key of an intent.
type TransferKey struct {
	AccountID uuid.UUID `bun:"account_id,type:uuid"`
	ID        uuid.UUID `bun:"id,type:uuid"`
}

func keyOf(i *transfer.Intent) TransferKey { return TransferKey{AccountID: i.AccountID, ID: i.ID} }

// ExpireBatch is how many intents expire in one transaction.
const ExpireBatch = 500

// UnopenedWait is how long after its deadline an order of a chain that is watched waits to be compared with its settler.
const UnopenedWait = 5 * time.Minute

// ExpireTransfers expires a batch of the created intents whose deadline has passed and returns their number; 0 means that none is
// left. Orders of a chain that is watched wait until its watcher has compared them with their settlers: somebody may have opened them. Any
// number of cores may call it concurrently: each skips the rows that another has locked.
func (s *Store) ExpireTransfers(ctx context.Context) (expired int, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		var rows []TransferRow
		err := tx.db.NewSelect().Model(&rows).Where("status = ? AND deadline <= statement_timestamp()", transfer.Created).
			Where(`type = ? OR deadline <= statement_timestamp() - ? * interval '1 second' OR NOT EXISTS (SELECT FROM watched_chains WHERE chain_id = source_chain
				AND deadline > unopened_until AND stopped IS NULL AND lease_until > statement_timestamp())`, transfer.Transfer, UnopenedWait.Seconds()).
			Order("deadline").Limit(ExpireBatch).For("UPDATE SKIP LOCKED").Scan(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		intents := make([]*transfer.Intent, len(rows))
		events := make([]transfer.Event, len(rows))
		for n, row := range rows {
			if intents[n], err = row.Intent(); err != nil {
				return err
			}
			if events[n], err = intents[n].Apply(transfer.Command{Trigger: transfer.Expire}, now); err != nil {
				return err
			}
		}
		expired = len(rows)
		return tx.SaveTransitions(ctx, intents, events)
	})
	if err != nil {
		return 0, fmt.Errorf("expire transfers: %w", err)
	}
	s.metrics.countTransitions(transfer.Created, transfer.Expired, expired)
	return expired, nil
}

// Now is the time by the database's clock, which all cores share. It is read after the rows are locked, so that no earlier holder
// of the lock wrote a later time, and clients that poll by updated_at miss nothing however long the wait was.
func (tx Tx) Now(ctx context.Context) (now time.Time, err error) {
	if err := tx.db.NewRaw("SELECT clock_timestamp()").Scan(ctx, &now); err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return now.UTC(), nil
}

type eventRow struct {
	bun.BaseModel `bun:"table:events,alias:events"`

	AccountID   uuid.UUID        `bun:"account_id,type:uuid"`
	TransferID  uuid.UUID        `bun:"transfer_id,type:uuid"`
	Trigger     transfer.Trigger `bun:"trigger,type:text,nullzero"`
	From        transfer.Status  `bun:"from_status,type:text,nullzero"`
	To          transfer.Status  `bun:"to_status,type:text"`
	Hash        string           `bun:"hash,type:text,nullzero"`
	Failure     transfer.Failure `bun:"failure,type:text,nullzero"`
	ChainID     string           `bun:"chain_id,type:text,nullzero"`
	TxHash      []byte           `bun:"tx_hash,type:bytea"`
	BlockNumber *uint64          `bun:"block_number,type:bigint"`
	Found       string           `bun:"found,type:text,nullzero"`
	Sequence    int              `bun:"sequence,type:integer"`
	Simulated   bool             `bun:"simulated,type:boolean"`
	OccurredAt  time.Time        `bun:"occurred_at,type:timestamptz"`
}

func newEventRow(e transfer.Event) eventRow {
	row := eventRow{
		AccountID: e.AccountID, TransferID: e.TransferID, Trigger: e.Trigger, From: e.From, To: e.To,
		Hash: e.Hash, Failure: e.Failure, Simulated: e.Simulated, OccurredAt: e.At,
	}
	if o := e.Observed; o != nil {
		row.ChainID, row.TxHash, row.Found = o.Chain.String(), o.Hash.Bytes(), o.Found
		if o.Block != nil {
			row.BlockNumber = &o.Block.Number
		}
	}
	return row
}

func (r eventRow) event() (transfer.Event, error) {
	e := transfer.Event{
		AccountID: r.AccountID, TransferID: r.TransferID, Trigger: r.Trigger, From: r.From, To: r.To,
		Hash: r.Hash, Failure: r.Failure, Simulated: r.Simulated, At: r.OccurredAt.UTC(),
	}
	if r.ChainID == "" {
		return e, nil
	}
	chain, err := caip.ParseChainID(r.ChainID)
	if err != nil {
		return e, fmt.Errorf("read an event of transfer %s: %w", r.TransferID, err)
	}
	e.Observed = &transfer.Transaction{Chain: chain, Hash: common.Hash(r.TxHash), Found: r.Found}
	if r.BlockNumber != nil {
		e.Observed.Block = &transfer.Block{Number: *r.BlockNumber}
	}
	return e, nil
}

// eventColumns are those of eventRow, in its order.
const eventColumns = `account_id, transfer_id, trigger, from_status, to_status, hash, failure, chain_id, tx_hash, block_number, found, sequence, simulated,
	occurred_at`

// insertNewEvents writes the events of the table new, whose sequence counts those of each intent from 1, after the intent's last event.
const insertNewEvents = ` INSERT INTO events (` + eventColumns + `)
	SELECT account_id, transfer_id, trigger, from_status, to_status, hash, failure, chain_id, tx_hash, block_number, found, sequence + coalesce((
		SELECT max(earlier.sequence) FROM events AS earlier WHERE earlier.transfer_id = new.transfer_id AND earlier.account_id = new.account_id
	), 0), simulated, occurred_at FROM new ORDER BY sequence`

// newEvents are the rows of events for insertNewEvents.
func (tx Tx) newEvents(events []transfer.Event) *bun.ValuesQuery {
	last := make(map[uuid.UUID]int, len(events))
	rows := make([]eventRow, len(events))
	for n, e := range events {
		last[e.TransferID]++
		rows[n] = newEventRow(e)
		rows[n].Sequence = last[e.TransferID]
	}
	return tx.db.NewValues(&rows)
}

// insertEvents writes events of intents that the transaction has locked.
func (tx Tx) insertEvents(ctx context.Context, events []transfer.Event) error {
	_, err := tx.db.NewRaw(`WITH new (`+eventColumns+`) AS (?)`+insertNewEvents, tx.newEvents(events)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write %d events: %w", len(events), err)
	}
	return nil
}

// Events reads the events of one of an account's intents, oldest first, as far back as they are kept.
func (s *Store) Events(ctx context.Context, accountID, transferID uuid.UUID) ([]transfer.Event, error) {
	var rows []eventRow
	err := s.db.NewSelect().Model(&rows).Where("account_id = ? AND transfer_id = ?", accountID, transferID).Order("id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the events of transfer %s: %w", transferID, err)
	}
	events := make([]transfer.Event, len(rows))
	for n, r := range rows {
		if events[n], err = r.event(); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// transitionRow is the part of an intent that transitions change.
type transitionRow struct {
	AccountID    uuid.UUID       `bun:"account_id,type:uuid"`
	ID           uuid.UUID       `bun:"id,type:uuid"`
	Status       transfer.Status `bun:"status,type:text"`
	Hash         string          `bun:"hash,type:text,nullzero"`
	Failure      string          `bun:"failure,type:text,nullzero"`
	CancelledAt  time.Time       `bun:"cancelled_at,type:timestamptz,nullzero"`
	RefundableAt time.Time       `bun:"refundable_at,type:timestamptz,nullzero"`
	UpdatedAt    time.Time       `bun:"updated_at,type:timestamptz"`
	// MaySend is false once a signature of the intent is not kept any more.
	MaySend   bool `bun:"may_send,type:boolean"`
	Simulated bool `bun:"simulated,type:boolean"`
}

// SaveTransitions writes the changed intents and the events, in one statement.
func (tx Tx) SaveTransitions(ctx context.Context, intents []*transfer.Intent, events []transfer.Event) error {
	if len(events) == 0 {
		return nil
	}
	rows := make([]transitionRow, len(intents))
	for n, i := range intents {
		rows[n] = transitionRow{
			AccountID: i.AccountID, ID: i.ID, Status: i.Status, Hash: i.Hash, Failure: i.Failure,
			CancelledAt: i.CancelledAt, RefundableAt: i.RefundableAt, UpdatedAt: i.UpdatedAt, MaySend: !i.Executed() && i.Status != transfer.Cancelled,
			Simulated: i.Simulated,
		}
	}
	_, err := tx.db.NewRaw(`WITH changed (account_id, id, status, hash, failure, cancelled_at, refundable_at, updated_at, may_send, simulated) AS (?),
		moved AS (
			UPDATE transfers SET status = changed.status, hash = changed.hash, failure = changed.failure,
				cancelled_at = changed.cancelled_at, refundable_at = changed.refundable_at, updated_at = changed.updated_at,
				signature = CASE WHEN changed.may_send THEN signature END,
				simulated = changed.simulated, answered = transfers.answered OR changed.simulated
			FROM changed WHERE transfers.account_id = changed.account_id AND transfers.id = changed.id
		), new (`+eventColumns+`) AS (?)`+insertNewEvents, tx.db.NewValues(&rows), tx.newEvents(events)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the transitions of %d transfers: %w", len(rows), err)
	}
	return nil
}
