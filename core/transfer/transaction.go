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
	// RoleSettle pays the filler on the source chain, after the news that the order was filled.
	RoleSettle Role = "settle"
	// RoleRefund pays the sender back on the source chain.
	RoleRefund Role = "refund"
)

// State is what became of a transaction.
type State string

// The states. All but pending, dropped and replaced are of a transaction that is in a block.
const (
	// Pending is a transaction that is in no block yet, as far as is known.
	Pending State = "pending"
	// Mined is a transaction that has the effect of its role.
	Mined State = "mined"
	// Reverted is a transaction that the chain undid.
	Reverted State = "reverted"
	// Replaced is an attempt whose nonce another transaction used.
	Replaced State = "replaced"
	// Mismatch is a transaction without the effect that the intent asks for.
	Mismatch State = "mismatch"
	// OrderMismatch is a transaction in which the settler opened another order.
	OrderMismatch State = "order_mismatch"
	// Unsupported is a native transfer out of a contract account, which leaves no log to judge by.
	Unsupported State = "unsupported"
	// Dropped is an attempt that no provider knew long after the deadline.
	Dropped State = "dropped"
	// Finalized is a mined transaction whose block counts as final. It is shown and never stored: see Intent.Shown.
	Finalized State = "finalized"
)

// failures are the states of attempts that came to nothing, and what the intent's failure is called then.
var failures = map[State]Failure{
	Reverted: TxReverted, Replaced: TxReplaced, Mismatch: TxMismatch, OrderMismatch: OrderIDMismatch,
}

// Block is where a transaction was mined.
type Block struct {
	Number uint64
	Hash   common.Hash
}

// NoLog is the log index of an effect that leaves no log: a native transfer.
const NoLog = -1

// Transaction is a transaction of an intent as it was last seen.
type Transaction struct {
	Role  Role
	Chain caip.ChainID
	Hash  common.Hash
	State State
	// Reported means that the client reported the hash; others were found on chain.
	Reported bool
	// Block is nil while the transaction is in none.
	Block *Block
	// LogIndex is the effect's log in its block, or NoLog. It has a meaning only while the state is Mined.
	LogIndex int64
	// Confirmed means that the block is as deep as the role asks and that a second provider, where there is one, says the same.
	// A replaced attempt is confirmed once the block that used its nonce is.
	Confirmed bool
	// Sender and Nonce are known once a provider has shown the transaction; Sender is nil before.
	Sender *common.Address
	Nonce  uint64
	// SeenAt is when the transaction was first reported or seen, by the database's clock.
	SeenAt time.Time
}

// Awaits reports whether something is still to be found out about a transaction of the intent: whether an attempt comes into a block while
// no other has carried the intent, or what the settler answers to an open order.
func (i *Intent) Awaits(t Transaction) bool {
	switch t.State {
	case Pending, Dropped:
		return !i.Carried()
	case Mined:
		return t.Role == RoleOpen && i.Status == Confirmed
	default:
		return false
	}
}

// Carried reports whether a transaction has carried the intent out: it is confirmed, or the settler has answered.
func (i *Intent) Carried() bool {
	return i.Status == Confirmed || i.Status == Filled || i.Status == Refunded
}

// AttemptRole is the role of the transaction that the client sends.
func (i *Intent) AttemptRole() Role {
	if i.Type == Transfer {
		return RoleSend
	}
	return RoleOpen
}

// isAttempt reports whether the transaction is one that carries the intent out, not the settler's answer to it.
func (t Transaction) isAttempt() bool { return t.Role == RoleSend || t.Role == RoleOpen }

// Effect is the transaction that carries the intent, nil while none is in a block. The chain lets an order be opened once, and a
// transfer is carried by the first transaction that was seen.
func Effect(transactions []Transaction) *Transaction {
	for n := range transactions {
		if t := &transactions[n]; t.isAttempt() && t.State == Mined {
			return t
		}
	}
	return nil
}
