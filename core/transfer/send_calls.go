package transfer

import (
	"math/big"
	"strconv"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

// Payable is an intent with its transaction, nil if none may be sent.
type Payable struct {
	*Intent
	Tx *Tx
}

// SendCalls is one request of wallet_sendCalls (EIP-5792) that pays for intents. It stands alone: it has the approvals that its calls need.
type SendCalls struct {
	Chain     caip.ChainID
	From      string
	Transfers []uuid.UUID
	Calls     []Call
	// approvals are the places of the approvals in Calls.
	approvals map[approval]*approved
}

type approval struct{ token, spender string }

// approved is the place of an approval, and the sum of the amounts.
type approved struct {
	place int
	sum   *big.Int
}

// ExclusionReason is why a batch's calls do not pay for an intent.
type ExclusionReason string

// The reasons, of which the first that applies is told.
const (
	// ExcludedSigning is of an intent that its user signs: it has no calls of the user's.
	ExcludedSigning ExclusionReason = "SIGNING"
	// ExcludedStatus is of an intent that was reported or has ended, or whose transaction must not be sent: see Sendable.
	ExcludedStatus ExclusionReason = "STATUS"
	// ExcludedNative is of a plain payment of the native token: a batch from a smart account leaves no log of it, by which it could be found.
	ExcludedNative ExclusionReason = "NATIVE"
	// ExcludedExpiresSoon is of an intent whose deadline is less than a minute away.
	ExcludedExpiresSoon ExclusionReason = "EXPIRES_SOON"
)

// callsMargin is the least time to the deadline of an intent in a batch's calls.
const callsMargin = time.Minute

// Excluded is an intent that a batch's calls do not pay for.
type Excluded struct {
	ID     uuid.UUID
	Reason ExclusionReason
}

// PlanCalls returns the requests that pay for intents: those of one source account together, in the order of the items, each with up to most calls,
// at least 2. An intent's approval and its own call are in one request, and the approvals of a request for one token and spender are one of their sum.
func PlanCalls(items []Payable, now time.Time, most int) (requests []SendCalls, excluded []Excluded, err error) {
	var senders []caip.AccountID
	of := map[caip.AccountID][]SendCalls{}
	for _, item := range items {
		if reason := item.excluded(now); reason != "" {
			excluded = append(excluded, Excluded{item.ID, reason})
			continue
		}
		sender := item.Source.Account
		open, known := of[sender]
		if !known {
			senders = append(senders, sender)
		}
		if !known || !open[len(open)-1].hasRoom(item.Tx, most) {
			open = append(open, SendCalls{Chain: sender.Chain, From: sender.Address, approvals: map[approval]*approved{}})
		}
		if err := open[len(open)-1].add(item); err != nil {
			return nil, nil, err
		}
		of[sender] = open
	}
	for _, sender := range senders {
		requests = append(requests, of[sender]...)
	}
	return requests, excluded, nil
}

func (p Payable) excluded(now time.Time) ExclusionReason {
	switch {
	case p.Signing.Scheme != "":
		return ExcludedSigning
	case p.Tx == nil || p.Status != Created:
		return ExcludedStatus
	case p.Type == Transfer && registry.Native(p.Source.Token):
		return ExcludedNative
	case p.Deadline.Sub(now) < callsMargin:
		return ExcludedExpiresSoon
	default:
		return ""
	}
}

// hasRoom reports whether the calls of a transaction fit into the request.
func (s *SendCalls) hasRoom(tx *Tx, most int) bool {
	calls := len(s.Calls) + 1
	for _, a := range tx.Allowances {
		known := s.approvals[approval{a.Token.Address, a.Spender}]
		if known == nil {
			calls++
		} else if new(big.Int).Add(known.sum, a.Amount).BitLen() > 256 { // no allowance can be the sum
			return false
		}
	}
	return calls <= most
}

// add adds the calls of an intent, with its approvals before them or in those that are there.
func (s *SendCalls) add(item Payable) error {
	for _, a := range item.Tx.Allowances {
		key := approval{a.Token.Address, a.Spender}
		known := s.approvals[key]
		if known == nil {
			s.approvals[key] = &approved{len(s.Calls), a.Amount}
			s.Calls = append(s.Calls, a.Approve)
			continue
		}
		known.sum = new(big.Int).Add(known.sum, a.Amount)
		var err error
		if s.Calls[known.place], err = tokenCall(erc20Approve, a.Token, a.Spender, known.sum); err != nil {
			return err
		}
	}
	s.Transfers, s.Calls = append(s.Transfers, item.ID), append(s.Calls, item.Tx.Call)
	return nil
}

// AppendSendCalls appends the parameter of wallet_sendCalls (EIP-5792), whose numbers are hexadecimal. atomicRequired is false:
// wallets that cannot execute the calls as one transaction send them one after the other.
func AppendSendCalls(b []byte, chain caip.ChainID, from string, calls []Call) []byte {
	number, _ := chain.Number() // the registry has eip155 chains only
	b = append(b, `{"version":"2.0.0","chainId":"0x`...)
	b = strconv.AppendUint(b, number, 16)
	b = append(b, `","from":`...)
	b = AppendText(b, from)
	b = append(b, `,"atomicRequired":false,"calls":[`...)
	for n, c := range calls {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = appendCall(b, c, appendQuantity)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}
