package transfer

import (
	"slices"
	"time"

	"intents.internal/pkg/caip"
)

// History is the on-chain state of an intent. The zero value means that no chain has shown anything.
type History struct {
	// Transactions are the intent's, oldest first.
	Transactions []Transaction
	// Heights are those of the chains that the transactions are on; a chain that has never been read is left out.
	Heights map[caip.ChainID]Heights
}

// Heights are how far a chain has been read.
type Heights struct {
	// Head is the newest block, Final the newest that counts as final.
	Head, Final uint64
}

// Confirmations are how deep the block is of the transaction that carries an intent.
type Confirmations struct {
	// Have is the depth, 1 for the head. Need is the depth at which the chain's finality rule counts blocks, also where it is a tag.
	Have, Need uint64
	// Finalized means that the block counts as final.
	Finalized bool
}

// Confirmations is nil while the effect is in no block.
func (h History) Confirmations(need uint64) *Confirmations {
	effect := Effect(h.Transactions)
	if effect == nil || effect.Block == nil {
		return nil
	}
	// A reported transaction can be seen in a block before the chain is read that far.
	head := max(h.Heights[effect.Chain].Head, effect.Block.Number)
	return &Confirmations{Have: head - effect.Block.Number + 1, Need: need, Finalized: h.finalized(*effect)}
}

func (h History) finalized(t Transaction) bool {
	read, known := h.Heights[t.Chain]
	return known && t.Block != nil && t.Block.Number <= read.Final
}

// Unverifiable reports whether an attempt was mined whose effect nothing on chain shows: a native transfer out of a contract account.
func (h History) Unverifiable() bool {
	unsupported := func(t Transaction) bool { return t.State == Unsupported }
	return Effect(h.Transactions) == nil && slices.ContainsFunc(h.Transactions, unsupported)
}

// Refundable reports whether the order can be refunded at the destination's settler: it is open, nobody has filled it and its deadline
// has passed.
func (i *Intent) Refundable(h History, now time.Time) bool {
	answered := func(t Transaction) bool { return !t.isAttempt() }
	return i.Status == Confirmed && i.Type != Transfer && now.After(i.Deadline) && !slices.ContainsFunc(h.Transactions, answered)
}

// Shown are the transactions in the words for clients, oldest first. The states are Pending, Mined, Reverted, Replaced, Mismatch and
// Finalized; the roles are all but RoleSettle, which is the same news as RoleFill and stands for it where the fill itself is not known.
func (i *Intent) Shown(h History) []Transaction {
	filled := slices.ContainsFunc(h.Transactions, func(t Transaction) bool { return t.Role == RoleFill })
	shown := make([]Transaction, 0, len(h.Transactions))
	for _, t := range h.Transactions {
		if t.Role == RoleSettle && filled {
			continue
		}
		if t.Role == RoleSettle {
			t.Role = RoleFill
		}
		t.State = i.shownState(h, t)
		shown = append(shown, t)
	}
	return shown
}

func (i *Intent) shownState(h History, t Transaction) State {
	switch t.State {
	case Pending, Dropped:
		if i.Carried() && t.isAttempt() && t.Hash.Hex() != i.Hash {
			return Replaced
		}
		return Pending
	case Mined, Unsupported:
		if h.finalized(t) {
			return Finalized
		}
		return Mined
	case OrderMismatch:
		return Mismatch
	default:
		return t.State
	}
}
