// Package transfer is the domain of the service: what a transfer intent is, which kind of operation it asks for, how
// its order is encoded and identified, and which transaction carries it out. It is pure; it reads no clock and does no
// I/O.
package transfer

import (
	"math/big"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/caip"
)

// Type is the operation an intent asks for. It is inferred, never given.
type Type string

// The three operations.
const (
	// Transfer moves one token to another account of the same chain.
	Transfer Type = "transfer"
	// Swap turns one token into another on the same chain.
	Swap Type = "swap"
	// Bridge crosses from one chain to another.
	Bridge Type = "bridge"
)

// ParseType reads one of the three words exactly; ok is false for anything else.
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

// The eight statuses. Created is the first of every intent.
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

// ParseStatus reads one of the eight words exactly; ok is false for anything else.
func ParseStatus(s string) (status Status, ok bool) {
	switch status = Status(s); status {
	case Created, Submitted, Confirmed, Filled, Refunded, Failed, Expired, Cancelled:
		return status, true
	default:
		return "", false
	}
}

// Leg is one side of an intent.
type Leg struct {
	Account caip.AccountID
	Token   caip.AccountID
	// Amount is in the token's smallest unit, 1 to 2^256-1. On the destination of a swap or bridge it is the least
	// that may arrive.
	Amount *big.Int
}

// Intent is a recorded transfer intent. Its order and transaction are computed from it and not stored.
type Intent struct {
	// ID is a UUIDv7 made when the request arrived; its number is the order's senderNonce.
	ID        uuid.UUID
	AccountID uuid.UUID
	KeyID     uuid.UUID
	Type      Type
	Status    Status
	// OrderID is the Keccak-256 of the encoded order: see Order.
	OrderID     [32]byte
	Source      Leg
	Destination Leg
	Settlement  Settlement
	// Deadline has whole seconds, as the order's fillDeadline has.
	Deadline time.Time
	// Reference is the client's own name for the intent, empty for none.
	Reference string
	// Hash is the transaction that carries the intent out, empty before one is known.
	Hash string
	// Failure is why the intent failed, empty if it did not.
	Failure string
	// CancelledAt is when the client cancelled the intent, zero if it did not. A cancelled intent whose transaction is seen on chain
	// has another status and still was cancelled.
	CancelledAt time.Time
	// RefundableAt is when the event was written that the order can be refunded, zero if none was since the intent was confirmed.
	RefundableAt time.Time
	// CreatedAt and UpdatedAt are by the database's clock once the intent is stored, equal until the first transition.
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Settlement holds the domains, the settlers and the scheme that an order was built with, as they were at its creation.
type Settlement struct {
	// Scheme is how the order is encoded and identified: chain.OrderDataScheme, which Order implements.
	Scheme            string
	OriginDomain      uint32
	DestinationDomain uint32
	// OriginSettler and DestinationSettler are EVM addresses, both empty for a transfer.
	OriginSettler      string
	DestinationSettler string
}

// Summary is the part of an intent that lists show. Amounts are decimal digits, since lists only print them.
type Summary struct {
	ID                uuid.UUID
	Type              Type
	Status            Status
	OrderID           [32]byte
	Chain             caip.ChainID
	SourceAmount      string
	DestinationAmount string
	Reference         string
	Hash              string
	CreatedAt         time.Time
	UpdatedAt         time.Time
}

// Final reports whether nobody need do anything more about an intent of this type in this status. Only the chain itself can take
// that back, by a reorganization.
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

// Summary is the part that lists show.
func (i *Intent) Summary() Summary {
	return Summary{
		ID: i.ID, Type: i.Type, Status: i.Status, OrderID: i.OrderID, Chain: i.Source.Account.Chain,
		SourceAmount: i.Source.Amount.String(), DestinationAmount: i.Destination.Amount.String(), Reference: i.Reference,
		Hash: i.Hash, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
	}
}

// AsCreated is the intent as it was before its first transition.
func (i *Intent) AsCreated() *Intent {
	created := *i
	created.Status, created.Hash, created.Failure, created.UpdatedAt = Created, "", "", i.CreatedAt
	created.CancelledAt, created.RefundableAt = time.Time{}, time.Time{}
	return &created
}
