package transfer

import (
	"slices"
	"time"

	"intents.internal/pkg/caip"
)

// History is what the chains have shown of an intent. In the zero value they have shown nothing.
type History struct {
	// Transactions are the intent's, oldest first.
	Transactions []Transaction
	// Heights are the heights of the transactions' chains, without chains that have never been read.
	Heights map[caip.ChainID]Heights
	// SourceReadUntil is the time, by the source chain's own clock, up to which all its blocks have been read. It is zero for a chain
	// that is not followed.
	SourceReadUntil time.Time
}

// Heights are how far a chain has been read.
type Heights struct {
	// Head is the newest block, Final the newest final one.
	Head, Final uint64
}

// Confirmations is the depth of the block with the intent's transaction.
type Confirmations struct {
	// Have is the depth, 1 for the head. Need is the chain's configured number of confirmations, also if its finality rule is a
	// block tag.
	Have, Need uint64
	// Finalized means that the block is final.
	Finalized bool
}

// Confirmations returns nil while the effect is in no block.
func (h History) Confirmations(need uint64) *Confirmations {
	effect := Effect(h.Transactions)
	if effect == nil || effect.Block == nil {
		return nil
	}
	// A reported transaction can be seen in a block that is above the last block read.
	head := max(h.Heights[effect.Chain].Head, effect.Block.Number)
	return &Confirmations{Have: head - effect.Block.Number + 1, Need: need, Finalized: h.finalized(*effect)}
}

// finalized reports whether a confirmed transaction is in a final block.
func (h History) finalized(t Transaction) bool { return t.Confirmed && h.isFinal(t) }

// isFinal reports whether the block of a transaction is final.
func (h History) isFinal(t Transaction) bool {
	read, known := h.Heights[t.Chain]
	return known && t.Block != nil && t.Block.Number <= read.Final
}

// Unverifiable reports whether an attempt was mined whose effect cannot be judged: see Unsupported.
func (h History) Unverifiable() bool {
	unsupported := func(t Transaction) bool { return t.State == Unsupported }
	return Effect(h.Transactions) == nil && slices.ContainsFunc(h.Transactions, unsupported)
}

// Refundable reports whether the order can be refunded at the input settler: it is open, has expired by the source chain's clock, with
// which the settler compares, and no fill, claim or refund of it is known.
func (i *Intent) Refundable(h History) bool {
	return i.Status == Confirmed && h.SourceReadUntil.After(i.Settlement.Expires) && !i.Answered(h.Transactions)
}

// Answered reports whether the order cannot be refunded by what is known of it: a fill, claim or refund, or no order that the settler has, as one
// that was simulated.
func (i *Intent) Answered(transactions []Transaction) bool {
	return i.Simulated || !i.HasOrder() || slices.ContainsFunc(transactions, Transaction.Answers)
}

// Answers reports whether the transaction is a fill, claim or refund of an order. A disputed one ends nothing.
func (t Transaction) Answers() bool { return !t.isAttempt() && !t.Disputed }

// shownRoles are those of the transactions that concern the sender or the recipient.
var shownRoles = []Role{RoleSend, RoleOpen, RoleFill, RoleRefund}

// Shown returns the transactions with the public states and roles, oldest first. The states are Pending, Mined, Reverted, Replaced,
// Mismatch and Finalized; the roles are all except RoleFinalise, which is between the settler and the solver.
func (i *Intent) Shown(h History) []Transaction {
	shown := make([]Transaction, 0, len(h.Transactions))
	for _, t := range h.Transactions {
		if slices.Contains(shownRoles, t.Role) {
			t.State = i.shownState(h, t)
			shown = append(shown, t)
		}
	}
	return shown
}

func (i *Intent) shownState(h History, t Transaction) State {
	switch t.State {
	case Pending, Dropped:
		if i.Executed() && t.isAttempt() && t.Hash.Hex() != i.Hash {
			return Replaced
		}
		return Pending
	case Mined:
		if h.finalized(t) {
			return Finalized
		}
		return Mined
	case Unsupported: // never confirmed: there is nothing to compare
		if h.isFinal(t) {
			return Finalized
		}
		return Mined
	case OrderMismatch, Mismatch, Reverted:
		if !t.Confirmed { // another provider may show its effect
			return Mined
		}
		if t.State == OrderMismatch {
			return Mismatch
		}
	case Replaced, Finalized:
	}
	return t.State
}
