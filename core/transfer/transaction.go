package transfer

import (
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/pkg/caip"
)

// Role is what a transaction does for an intent.
type Role string

// The roles. A transfer has sends, a swap or bridge the others.
const (
	// RoleSend is the transaction of a transfer.
	RoleSend Role = "send"
	// RoleOpen opens the order at the settler of the source chain.
	RoleOpen Role = "open"
	// RoleFill pays the recipient on the destination chain.
	RoleFill Role = "fill"
	// RoleFinalise pays the input to the solver on the source chain, once its fill is proven. It is stored and never shown: see
	// Intent.Shown.
	RoleFinalise Role = "finalise"
	// RoleRefund pays the sender back on the source chain, after the order has expired.
	RoleRefund Role = "refund"
)

// State is the state of a transaction.
type State string

// The states. All but pending, dropped and replaced are of a transaction that is in a block.
const (
	// Pending is a transaction that is not known to be in a block.
	Pending State = "pending"
	// Mined is a transaction that has the effect of its role.
	Mined State = "mined"
	// Reverted is a transaction that reverted.
	Reverted State = "reverted"
	// Replaced is an attempt whose nonce another transaction used.
	Replaced State = "replaced"
	// Mismatch is a transaction without the effect that the intent asks for.
	Mismatch State = "mismatch"
	// OrderMismatch is a transaction in which the settler opened another order.
	OrderMismatch State = "order_mismatch"
	// Unsupported is a transaction without an event to judge by: a native transfer from a contract account, or one that opens an order of a
	// scheme that is no longer supported.
	Unsupported State = "unsupported"
	// Dropped is an attempt that no provider knew long after the deadline.
	Dropped State = "dropped"
	// Finalized is a mined transaction whose block is final. It is shown and never stored: see Intent.Shown.
	Finalized State = "finalized"
)

// Ended reports whether an attempt in this state is looked up no longer, or seldom: it has failed, or no provider knew it.
func (s State) Ended() bool {
	_, failed := failures[s]
	return failed || s == Dropped
}

// Block is where a transaction was mined.
type Block struct {
	Number uint64
	Hash   common.Hash
}

// NoLog is the log index of an effect that emits no log: a native transfer.
const NoLog = -1

// Transaction is the last seen state of an intent's transaction.
type Transaction struct {
	Role  Role
	Chain caip.ChainID
	Hash  common.Hash
	State State
	// Reported means that the client reported the hash; others were found on chain.
	Reported bool
	// Block is nil while the transaction is in none.
	Block *Block
	// LogIndex is the index of the effect's log in its block, or NoLog. It is valid only while the state is Mined.
	LogIndex int64
	// Found is what there is instead of the effect that the intent asks for: the hash of the transaction that replaced this one, the id of
	// the other order that was opened, or the other amount that was paid or deposited. It is empty where nothing of the kind is known.
	Found string
	// Confirmed means that the block is as deep as the role requires and that a second provider, if there is one, agrees. What is not
	// confirmed is provisional. A replaced attempt is confirmed once the block that used its nonce is.
	Confirmed bool
	// Disputed means that it is deep enough to be confirmed and that fewer than two providers show it.
	Disputed bool
	// Sender and Nonce are known once a provider has shown the transaction; Sender is nil before.
	Sender *common.Address
	Nonce  uint64
	// SeenAt is when the transaction was first reported or seen, by the database's clock.
	SeenAt time.Time
}

// Awaits reports whether the watcher must still follow a transaction of the intent: an attempt that is in no block or has failed while no
// other has executed the intent, the opening of an order without the settler's fill or refund, or a refund, since the order can be filled too.
func (i *Intent) Awaits(t Transaction) bool {
	switch t.State {
	case Pending, Dropped, Reverted, Replaced, Mismatch, OrderMismatch:
		return !i.Executed() && (!t.Failed() || t.Confirmed)
	case Mined:
		unfilled := t.Role == RoleOpen && i.Status == Confirmed || t.Role == RoleRefund && i.Status == Refunded
		return unfilled && i.HasOrder()
	default:
		return false
	}
}

// Executed reports whether a transaction has executed the intent: it is confirmed, filled or refunded.
func (i *Intent) Executed() bool {
	return i.Status == Confirmed || i.Status == Filled || i.Status == Refunded
}

// AttemptRole returns the role of the transaction that the client sends.
func (i *Intent) AttemptRole() Role {
	if i.Type == Transfer {
		return RoleSend
	}
	return RoleOpen
}

// isAttempt reports whether the transaction executes the intent, in contrast to the settler's transactions.
func (t Transaction) isAttempt() bool { return t.Role == RoleSend || t.Role == RoleOpen }

// Effect returns the transaction that executed the intent, nil while none is in a block. A confirmed one goes before those that one provider
// alone may have shown. An order is opened only once, by anybody; for a transfer it is the first transaction seen.
func Effect(transactions []Transaction) (effect *Transaction) {
	for n := range transactions {
		t := &transactions[n]
		if t.isAttempt() && t.State == Mined && (effect == nil || t.Confirmed && !effect.Confirmed) {
			effect = t
		}
	}
	return effect
}
