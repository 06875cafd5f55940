package transfer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Trigger is what makes an intent change its status.
type Trigger string

// The triggers. README.md beside this file draws where each leads.
const (
	// Submit reports a transaction's hash. A second one is a speed-up.
	Submit Trigger = "submit"
	// Cancel is the client's request before anything was sent.
	Cancel Trigger = "cancel"
	// Expire means that the deadline has passed and nothing was sent.
	Expire Trigger = "expire"
	// Dropped means that the deadline has passed and the chain no longer knows the transaction.
	Dropped Trigger = "dropped"
	// Confirm means that the effect is on chain, deep enough to stay.
	Confirm Trigger = "confirm"
	// Fail means that the transaction did something else than the intent asks, or nothing.
	Fail Trigger = "fail"
	// Fill is the settler's report that the recipient was paid.
	Fill Trigger = "fill"
	// Refund is the settler's report that the sender was paid back.
	Refund Trigger = "refund"
	// Reorg means that a reorganization of the chain removed a confirmed effect.
	Reorg Trigger = "reorg"
)

// transition is one row of the state machine.
type transition struct {
	from []Status
	to   Status
	// settlerOnly transitions exist only for intents that a settler carries out: swaps and bridges.
	settlerOnly bool
}

// transitions are the whole state machine; an intent begins in Created.
var transitions = map[Trigger]transition{
	Submit:  {from: []Status{Created, Submitted, Failed, Expired}, to: Submitted},
	Cancel:  {from: []Status{Created}, to: Cancelled},
	Expire:  {from: []Status{Created}, to: Expired},
	Dropped: {from: []Status{Submitted}, to: Expired},
	Confirm: {from: []Status{Submitted}, to: Confirmed},
	Fail:    {from: []Status{Submitted}, to: Failed},
	Fill:    {from: []Status{Confirmed}, to: Filled, settlerOnly: true},
	Refund:  {from: []Status{Confirmed}, to: Refunded, settlerOnly: true},
	Reorg:   {from: []Status{Confirmed}, to: Submitted},
}

// ErrTransition is returned for a trigger that means nothing in the intent's status.
var ErrTransition = errors.New("the intent's status does not allow this")

// Failure is the reason why an intent failed.
type Failure string

// The failures that a transaction can have.
const (
	TxReverted      Failure = "TX_REVERTED"
	TxReplaced      Failure = "TX_REPLACED"
	TxMismatch      Failure = "TX_MISMATCH"
	OrderIDMismatch Failure = "ORDER_ID_MISMATCH"
)

// Command is a trigger with what it reports.
type Command struct {
	Trigger Trigger
	// Hash is the transaction's, for Submit.
	Hash string
	// Failure is why, for Fail.
	Failure Failure
}

// Event is a transition that has happened. The first of every intent leads from no status to Created and is written with
// the intent itself.
type Event struct {
	TransferID uuid.UUID
	AccountID  uuid.UUID
	From       Status
	To         Status
	Hash       string
	Failure    Failure
	At         time.Time
}

// Apply is the one way in which an intent changes its status. It changes the intent and returns the event to write with
// it, or changes nothing and returns an error: one that wraps ErrTransition where the intent's status or type does not
// allow the trigger, any other where the command itself is malformed.
func (i *Intent) Apply(c Command, at time.Time) (Event, error) {
	t, ok := transitions[c.Trigger]
	if !ok || (c.Trigger == Submit) != (c.Hash != "") || (c.Trigger == Fail) != (c.Failure != "") {
		return Event{}, fmt.Errorf("malformed command: trigger %q with hash %q and failure %q", c.Trigger, c.Hash, c.Failure)
	}
	if !slices.Contains(t.from, i.Status) || (t.settlerOnly && i.Type == Transfer) {
		return Event{}, fmt.Errorf("%s a %s that is %s: %w", c.Trigger, i.Type, i.Status, ErrTransition)
	}
	if c.Trigger == Expire && at.Before(i.Deadline) {
		return Event{}, fmt.Errorf("expire a %s before its deadline: %w", i.Type, ErrTransition)
	}
	event := Event{
		TransferID: i.ID, AccountID: i.AccountID, From: i.Status, To: t.to, Failure: c.Failure, At: at,
	}
	if c.Hash != "" {
		i.Hash = c.Hash
	}
	event.Hash = i.Hash
	i.Status, i.Failure, i.UpdatedAt = t.to, string(c.Failure), at
	return event, nil
}
