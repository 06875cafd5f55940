package transfer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Trigger is the cause of a status change.
type Trigger string

// The triggers. README.md in this directory draws the state machine.
const (
	// Submit means that a transaction is known: the client reported its hash, or its effect was seen in a block that is not deep
	// enough yet. A second hash is a speed-up: a replacement with a higher fee.
	Submit Trigger = "submit"
	// Cancel is the client's request before anything was sent.
	Cancel Trigger = "cancel"
	// Expire means that the deadline has passed and nothing was sent.
	Expire Trigger = "expire"
	// Drop means that the deadline has passed and no provider knows any of the transactions.
	Drop Trigger = "drop"
	// Confirm means that the effect is on chain, deep enough to stay.
	Confirm Trigger = "confirm"
	// Fail means that every transaction had another effect than the intent's, or none.
	Fail Trigger = "fail"
	// Fill is the settler's report that the recipient was paid.
	Fill Trigger = "fill"
	// Refund is the settler's report that the sender was paid back.
	Refund Trigger = "refund"
	// Reorg means that a reorganization of the chain removed an effect.
	Reorg Trigger = "reorg"
	// Refundable means that the order has expired by the source chain's clock and is not filled. The status does not change.
	Refundable Trigger = "refundable"
	// Update means that the client changed the reference or the labels, see Intent.Update. The status does not change.
	Update Trigger = "update"
)

// transition is one row of the state machine.
type transition struct {
	from []Status
	// to has one status; if it has several, the command selects one.
	to []Status
	// settlerOnly transitions exist only for intents that a settler executes: swaps and bridges.
	settlerOnly bool
	// observed transitions require the transaction seen on chain.
	observed bool
}

// transitions are the complete state machine; an intent begins in Created. The chain is authoritative: what is seen there changes
// an intent's status, whatever the client did before.
var transitions = map[Trigger]transition{
	Cancel:  {from: []Status{Created}, to: []Status{Cancelled}},
	Expire:  {from: []Status{Created}, to: []Status{Expired}},
	Submit:  {from: []Status{Created, Submitted, Failed, Expired, Cancelled}, to: []Status{Submitted}},
	Confirm: {from: []Status{Submitted}, to: []Status{Confirmed}, observed: true},
	Fail:    {from: []Status{Submitted}, to: []Status{Failed}, observed: true},
	Drop:    {from: []Status{Submitted}, to: []Status{Expired}},
	// A refunded order may have been filled too, and one that was opened without its deposit.
	Fill:   {from: []Status{Confirmed, Refunded, Failed}, to: []Status{Filled}, settlerOnly: true, observed: true},
	Refund: {from: []Status{Confirmed}, to: []Status{Refunded}, settlerOnly: true, observed: true},
	// The status does not change, so that an order which is filled late is still filled.
	Refundable: {from: []Status{Confirmed}, to: []Status{Confirmed}, settlerOnly: true},
	Reorg: {
		from: []Status{Submitted, Confirmed, Filled, Refunded},
		to:   []Status{Submitted, Confirmed, Created, Expired, Cancelled},
	},
}

// ErrTransition is returned for a trigger that the intent's status does not allow.
var ErrTransition = errors.New("the intent's status does not allow this")

// Command is a trigger with its parameters.
type Command struct {
	Trigger Trigger
	// Hash is the transaction that executes the intent from now on, required for Submit and Confirm. After Reorg it is the
	// remaining attempt, empty for none.
	Hash string
	// Failure is the reason for Fail.
	Failure Failure
	// To is the status after Reorg.
	To Status
	// Observed is the transaction seen on chain. It is required for Confirm, Fail, Fill and Refund.
	Observed *Transaction
	// Simulated commands are those of Intent.Simulate: they have no transaction, neither Hash nor Observed.
	Simulated bool
}

// Event is a transition that has happened. The first event of every intent has no previous status; it is written together with
// the intent.
type Event struct {
	TransferID uuid.UUID
	AccountID  uuid.UUID
	Trigger    Trigger
	From       Status
	To         Status
	Hash       string
	Failure    Failure
	// Observed is the transaction seen on chain, nil for transitions that no transaction caused. Events keep only its chain, hash,
	// block number and what was found instead of an effect.
	Observed *Transaction
	// Simulated means that a client has simulated the transition.
	Simulated bool
	At        time.Time
}

// Apply is the only way to change an intent's status. It changes the intent and returns the event to write with it, or changes
// nothing and returns an error: it wraps ErrTransition if the intent's status or type does not allow the trigger; any other error
// means that the command is malformed.
func (i *Intent) Apply(c Command, at time.Time) (Event, error) {
	t, to, err := c.transition()
	if err != nil {
		return Event{}, err
	}
	if !slices.Contains(t.from, i.Status) || (t.settlerOnly && i.Type == Transfer) || (c.Trigger == Reorg && to == i.Status) ||
		(c.Trigger == Refundable && !i.RefundableAt.IsZero()) || i.Simulated && !c.Simulated {
		return Event{}, fmt.Errorf("%s a %s that is %s: %w", c.Trigger, i.Type, i.Status, ErrTransition)
	}
	if c.Trigger == Expire && at.Before(i.Deadline) && !c.Simulated {
		return Event{}, fmt.Errorf("%s a %s before its deadline: %w", c.Trigger, i.Type, ErrTransition)
	}
	switch {
	case i.Status == Cancelled && i.CancelledAt.IsZero():
		i.CancelledAt = i.UpdatedAt
	case to == Cancelled:
		i.CancelledAt = at
	}
	if i.RefundableAt = (time.Time{}); c.Trigger == Refundable {
		i.RefundableAt = at
	}
	if c.Hash != "" || c.Trigger == Reorg {
		i.Hash = c.Hash
	}
	i.Simulated = c.Simulated
	event := Event{
		TransferID: i.ID, AccountID: i.AccountID, Trigger: c.Trigger, From: i.Status, To: to, Hash: i.Hash, Failure: c.Failure,
		Observed: c.Observed, Simulated: c.Simulated, At: at,
	}
	i.Status, i.Failure, i.UpdatedAt = to, string(c.Failure), at
	return event, nil
}

// transition returns the row of the state machine and the new status, or an error for a malformed command.
func (c Command) transition() (t transition, to Status, err error) {
	t, ok := transitions[c.Trigger]
	if !ok {
		return t, "", fmt.Errorf("malformed command: there is no trigger %q", c.Trigger)
	}
	to = t.to[0]
	if len(t.to) > 1 {
		to = c.To
	}
	needsHash := (c.Trigger == Submit || c.Trigger == Confirm) && !c.Simulated
	mayHaveHash := needsHash || c.Trigger == Reorg
	switch {
	case !slices.Contains(t.to, to) || (len(t.to) == 1 && c.To != ""):
		return t, "", fmt.Errorf("malformed command: %s to %q", c.Trigger, c.To)
	case needsHash && c.Hash == "", !mayHaveHash && c.Hash != "":
		return t, "", fmt.Errorf("malformed command: %s with hash %q", c.Trigger, c.Hash)
	case (c.Trigger == Fail) != (c.Failure != ""):
		return t, "", fmt.Errorf("malformed command: %s with failure %q", c.Trigger, c.Failure)
	case c.Simulated && (c.Observed != nil || !slices.Contains(simulatedTriggers, c.Trigger)):
		return t, "", fmt.Errorf("malformed command: a simulated %s", c.Trigger)
	case t.observed && c.Observed == nil && !c.Simulated:
		return t, "", fmt.Errorf("malformed command: %s without the transaction that was observed", c.Trigger)
	}
	return t, to, nil
}
