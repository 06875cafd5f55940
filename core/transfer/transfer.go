// Package transfer is the domain of the service: what a transfer intent is, which kind of operation it asks for, how its order is
// encoded and identified, and which transaction executes it. It also has the JSON that API responses, event bodies and the console's
// scripts share. It is pure; it reads no clock and does no I/O.
package transfer

import (
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Type is the operation of an intent. It is inferred, never given.
type Type string

// The three operations.
const (
	// Transfer moves one token to another account of the same chain.
	Transfer Type = "transfer"
	// Swap exchanges one token for another on the same chain.
	Swap Type = "swap"
	// Bridge moves value from one chain to another.
	Bridge Type = "bridge"
)

// ParseType parses one of the three types exactly; ok is false for anything else.
func ParseType(s string) (t Type, ok bool) {
	switch t = Type(s); t {
	case Transfer, Swap, Bridge:
		return t, true
	default:
		return "", false
	}
}

// Status is the state of an intent.
type Status string

// The eight statuses. Every intent begins as Created.
const (
	Created   Status = "created"
	Submitted Status = "submitted"
	Confirmed Status = "confirmed"
	Filled    Status = "filled"
	Refunded  Status = "refunded"
	Failed    Status = "failed"
	Expired   Status = "expired"
	Cancelled Status = "cancelled"
)

// Statuses are all statuses, in the usual order of a life.
var Statuses = []Status{Created, Submitted, Confirmed, Filled, Refunded, Failed, Expired, Cancelled}

// ParseStatus parses one of the eight statuses exactly; ok is false for anything else.
func ParseStatus(s string) (status Status, ok bool) {
	if status = Status(s); slices.Contains(Statuses, status) {
		return status, true
	}
	return "", false
}

// Leg is one side of an intent.
type Leg struct {
	Account caip.AccountID
	Token   caip.AccountID
	// Amount is in the token's smallest unit, 1 to 2^256-1. On the destination of a swap or bridge it is the minimum to receive.
	Amount *big.Int
}

// Intent is a recorded transfer intent. Its order and transaction are computed from it and not stored.
type Intent struct {
	// ID is a UUIDv7 of the request's arrival; as a number it is the order's nonce, see Order.
	ID        uuid.UUID
	AccountID uuid.UUID
	KeyID     uuid.UUID
	// Environment is that of the source chain.
	Environment network.Environment
	Type        Type
	Status      Status
	// OrderID is the Keccak-256 of the encoded order: see Order.
	OrderID     [32]byte
	Source      Leg
	Destination Leg
	Settlement  Settlement
	// Quote is what the intent was made from, zero for none.
	Quote Quote
	// BatchID is the batch that the intent was created in, zero for none.
	BatchID uuid.UUID
	// Signing is how the user signs the intent, zero for one whose user sends a transaction.
	Signing Signing
	// Deadline has whole seconds, as the order's fillDeadline has.
	Deadline time.Time
	// Reference is the client's own reference for the intent, empty for none.
	Reference string
	// Labels are the client's own labels of the intent, empty for none.
	Labels wire.Labels
	// First is what the intent was called when it was created, nil if that has not changed, or was not read.
	First *Naming
	// Hash is the transaction that executes the intent, empty before one is known.
	Hash string
	// Failure is why the intent failed, empty if it did not.
	Failure string
	// CancelledAt is when the client cancelled the intent, zero if it did not. It stays set if the intent's transaction is seen
	// on chain later, which changes the status.
	CancelledAt time.Time
	// RefundableAt is when the refundable event was written, zero if none was written since the intent was confirmed.
	RefundableAt time.Time
	// Simulated means that a client has simulated a status: see Simulate. It stays, and the intent is never sent or followed on chain.
	Simulated bool
	// CreatedAt and UpdatedAt are from the database's clock once the intent is stored, equal until the first transition.
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Summary is the part of an intent that lists show.
type Summary struct {
	ID          uuid.UUID
	Environment network.Environment
	Type        Type
	Status      Status
	OrderID     [32]byte
	Source      SummaryLeg
	Destination SummaryLeg
	Deadline    time.Time
	Reference   string
	Labels      wire.Labels
	BatchID     uuid.UUID
	Signing     wire.SigningScheme
	Hash        string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// SummaryLeg is a Leg as text, because lists only print it: the addresses of the account and the token on one chain, and the amount in
// decimal digits.
type SummaryLeg struct {
	Chain   caip.ChainID
	Account string
	Token   string
	Amount  string
}

// Final reports whether an intent of this type needs nothing more in this status. Only a reorganization of the chain can undo a
// final status.
func Final(t Type, s Status) bool {
	switch s {
	case Filled, Refunded, Cancelled:
		return true
	case Confirmed:
		return t == Transfer
	default:
		return false
	}
}

// Ended reports whether no further step of an intent of this type is expected in this status: it is final, or it has failed or expired. An
// order that is open at its settler is in neither of these two, whatever became of the sender's own attempts (see Evaluate): it is confirmed,
// and has not ended while it can be filled or refunded. An ended intent continues only if a transaction for it is reported or seen on chain.
func Ended(t Type, s Status) bool {
	return Final(t, s) || s == Failed || s == Expired
}

// Summary returns the part that lists show.
func (i *Intent) Summary() Summary {
	return Summary{
		ID: i.ID, Environment: i.Environment, Type: i.Type, Status: i.Status, OrderID: i.OrderID,
		Source: i.Source.summary(), Destination: i.Destination.summary(), Deadline: i.Deadline, Reference: i.Reference,
		Labels: i.Labels, BatchID: i.BatchID, Signing: i.Signing.Scheme, Hash: i.Hash, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
	}
}

func (l Leg) summary() SummaryLeg {
	return SummaryLeg{Chain: l.Account.Chain, Account: l.Account.Address, Token: l.Token.Address, Amount: l.Amount.String()}
}

// AsCreated returns the intent as it was before its first transition.
func (i *Intent) AsCreated() *Intent {
	created, first := *i, i.first()
	created.Reference, created.Labels, created.First = first.Reference, first.Labels, nil
	created.Status, created.Hash, created.Failure, created.UpdatedAt = Created, "", "", i.CreatedAt
	created.CancelledAt, created.RefundableAt, created.Signing.SignedAt, created.Signing.Submitted = time.Time{}, time.Time{}, time.Time{}, nil
	created.Simulated = false
	return &created
}
