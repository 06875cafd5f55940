package transfer

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
)

// Failure is the reason why an intent failed.
type Failure string

// The failures that a transaction can have.
const (
	// TxReverted is a transaction that reverted.
	TxReverted Failure = "TX_REVERTED"
	// TxReplaced is a transaction whose nonce was used by another transaction with another effect.
	TxReplaced Failure = "TX_REPLACED"
	// TxMismatch is a transaction without the effect that the intent asks for.
	TxMismatch Failure = "TX_MISMATCH"
	// OrderIDMismatch is a transaction in which the settler opened another order.
	OrderIDMismatch Failure = "ORDER_ID_MISMATCH"
)

// failures maps the states of failed attempts to the intent's failure.
var failures = map[State]Failure{
	Reverted: TxReverted, Replaced: TxReplaced, Mismatch: TxMismatch, OrderMismatch: OrderIDMismatch,
}

// FailureReason explains a failure.
type FailureReason struct {
	// Message is a sentence for people.
	Message string
	// Hash is the transaction that failed, and Block its block, nil for one that is in none.
	Hash  string
	Block *Block
	// Expected is what the transaction was to show, and Found what was there instead: see Transaction.Found. Both are empty for none.
	Expected, Found string
}

// Explain explains why an intent failed, by the transaction that failed.
func (s *Summary) Explain(failure Failure, failed *Transaction) *FailureReason {
	r := &FailureReason{Hash: failed.Hash.Hex(), Block: failed.Block, Found: failed.Found}
	subject := fmt.Sprintf("The transaction %s on %s", r.Hash, failed.Chain)
	if failed.Block != nil {
		subject = fmt.Sprintf("The transaction %s in block %d of %s", r.Hash, failed.Block.Number, failed.Chain)
	}
	order := fmt.Sprintf("0x%x", s.OrderID)
	switch failure {
	case TxReverted:
		r.Message = subject + " reverted: the chain undid all that it did."
	case TxReplaced:
		r.Expected = r.Hash
		r.Message = subject + " was replaced: " + orElse(r.Found, "another transaction") + " used its nonce and does not carry out the intent."
	case TxMismatch:
		r.Expected, r.Message = s.mismatch(subject, order, r.Found)
	case OrderIDMismatch:
		r.Expected = order
		r.Message = subject + " opened " + orElse(r.Found, "another order") + " at the input settler, and not the intent's order " + order + "."
	}
	return r
}

func (s *Summary) mismatch(subject, order, found string) (expected, message string) {
	switch {
	case s.Type == Transfer && found != "":
		return s.Source.Amount, fmt.Sprintf("%s paid the recipient %s units of the token, and not exactly %s.", subject, found, s.Source.Amount)
	case s.Type == Transfer:
		return s.Source.Amount, fmt.Sprintf("%s has no payment of exactly %s units of the token to the recipient that is for this intent alone.", subject, s.Source.Amount)
	case found != "":
		return s.Source.Amount, fmt.Sprintf("%s opened the order and paid the input settler %s units of the token, and not %s.", subject, found, s.Source.Amount)
	default:
		return order, fmt.Sprintf("%s succeeded and did not open the intent's order %s.", subject, order)
	}
}

func orElse(found, unknown string) string {
	if found == "" {
		return unknown
	}
	return found
}

// failedAttempt is the newest attempt that failed for good; for a failure that is not empty, the newest that failed so. It is nil for none.
func failedAttempt(transactions []Transaction, failure Failure) (failed *Transaction) {
	for n := range transactions {
		t := &transactions[n]
		if f, useless := failures[t.State]; useless && t.isAttempt() && t.Confirmed && (failure == "" || f == failure) {
			failed = newer(failed, t)
		}
	}
	return failed
}

// FailureReason explains why the intent failed, nil if it did not.
func (i *Intent) FailureReason(h History) *FailureReason {
	failed := failedAttempt(h.Transactions, Failure(i.Failure))
	if i.Failure == "" || failed == nil {
		return nil
	}
	summary := i.Summary()
	return summary.Explain(Failure(i.Failure), failed)
}

// Failed reports whether the transaction is in a state in which it does not carry out the intent.
func (t Transaction) Failed() bool { return failures[t.State] != "" }

// Judge sets what Classify finds of an attempt that is in a block, and what the block has instead of the effect.
func (i *Intent) Judge(t *Transaction, in Inclusion) {
	t.State, t.LogIndex = i.Classify(in)
	t.Found = ""
	switch {
	case t.State == OrderMismatch:
		t.Found = i.otherOrder(in.Receipt.Logs)
	case t.State == Mismatch && i.HasOrder():
		t.Found = i.deposited(in.Receipt.Logs)
	case t.State == Mismatch && !i.Predates(in.BlockTime):
		t.Found = i.paid(in)
	}
}

// otherOrder is the id of the first order that the settler opened.
func (i *Intent) otherOrder(logs []evm.Log) string {
	for _, l := range logs {
		if e, ok := ParseSettlerEvent(l); ok && e.Role == RoleOpen && l.Address == common.HexToAddress(i.Settlement.InputSettler) {
			return fmt.Sprintf("0x%x", e.OrderID)
		}
	}
	return ""
}

// deposited is the most that one Transfer paid the settler for the order of the intent, empty if that was not opened.
func (i *Intent) deposited(logs []evm.Log) string {
	most, opened := new(big.Int), false
	for _, l := range logs {
		if paid, ok := i.depositAt(l); ok && paid.token == i.input().token && paid.amount.Cmp(most) > 0 {
			most = paid.amount
		}
		t, ok := i.MatchLog(i.Source.Account.Chain, l)
		opened = opened || ok && t.Role == RoleOpen
	}
	if !opened {
		return ""
	}
	return most.String()
}

// paid is another amount of the token that the source account paid the destination account, empty for none.
func (i *Intent) paid(in Inclusion) string {
	if tx := in.Transaction; registry.Native(i.Source.Token) {
		if i.sends(tx) && tx.Value != nil && tx.Value.Cmp(i.Source.Amount) != 0 {
			return tx.Value.String()
		}
		return ""
	}
	for _, l := range in.Receipt.Logs {
		if i.moves(l) && !i.pays(l) {
			return new(big.Int).SetBytes(l.Data).String()
		}
	}
	return ""
}
