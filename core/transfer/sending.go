package transfer

import (
	"errors"
	"time"

	"intents.internal/core/registry"
	"intents.internal/pkg/wire"
)

// Moment is what decides, besides the intent itself, whether its transaction may be sent: it is judged when it is handed out, and not once for
// all when the intent is created.
type Moment struct {
	Now time.Time
	// BlockTime is the usual time between two blocks of the source chain.
	BlockTime time.Duration
	// Retired means that the registry has the order's contracts no more: an import has removed or replaced its deployment.
	Retired bool
	// Done means that an effect of the intent stands in a block, however deep: a second transaction would pay again, or revert.
	Done bool
	// Screened means that an account of the intent is on the operator's screening list.
	Screened bool
	// Watched means that both chains are followed now. It does not decide: the record says it.
	Watched bool
	// Token is the source token as the registry has it now, zero where it has it no more. Its domain is what ERC-3009 signs in.
	Token registry.Token
}

// MomentOf is the moment of an intent with its history.
func (i *Intent) MomentOf(h History, known *registry.Snapshot, now time.Time) Moment {
	m := Moment{Now: now, BlockTime: registry.DefaultBlockTime, Done: Effect(h.Transactions) != nil}
	source, ok := known.Chain(i.Source.Account.Chain)
	if ok {
		m.BlockTime = source.BlockTime
	}
	destination, _ := known.Chain(i.Destination.Account.Chain)
	d := draft{kind: i.Type, sourceChain: source, destinationChain: destination, source: i.Source, destination: i.Destination}
	m.Watched = known.Watched(i.Source.Account.Chain, i.Destination.Account.Chain)
	if i.HasOrder() {
		_, found := d.find(i.Settlement)
		m.Retired = !found
	}
	if i.Signing.Scheme != "" {
		m.Token, _ = known.Token(i.Source.Token)
	}
	return m
}

// The reasons why an intent's transaction must not be sent.
var (
	ErrNotSendable = errors.New("the intent's transaction must not be sent any more")
	// ErrQuoteEnded is returned for an intent that was never sent and whose quote has ended.
	ErrQuoteEnded = errors.New("the intent's quote has ended")
)

// minSendMargin is the shortest time before the deadline of an order at which its transaction is no longer handed out.
const minSendMargin = 5 * time.Second

// Sendable returns nil while the intent's transaction may be sent, else ErrQuoteEnded, ErrNotSendable or ErrSimulated.
func (i *Intent) Sendable(m Moment) error {
	switch {
	case i.Simulated:
		return ErrSimulated
	case m.Screened, m.Done, i.Status != Created && i.Status != Submitted, i.Type != Transfer && !i.HasOrder(),
		i.Signing.Scheme == wire.ERC3009 && m.Token.ERC3009 == nil: // there is no domain to sign in
		return ErrNotSendable
	case i.Status == Created && !i.Quote.ExpiresAt.IsZero() && !m.Now.Before(i.Quote.ExpiresAt):
		return ErrQuoteEnded
	case m.Retired, !m.Now.Before(i.SendBy(m.BlockTime)):
		return ErrNotSendable
	default:
		return nil
	}
}

// SendBy is until when the intent's transaction may be sent: its deadline, or two blocks of its source chain before for an order, since the
// settler opens none at or after its deadline, and for an authorization, which ends then too. The end of the quote that the intent was made from
// may be earlier.
func (i *Intent) SendBy(blockTime time.Duration) time.Time {
	if i.Type == Transfer && i.Signing.Scheme == "" {
		return i.Deadline
	}
	by := i.Deadline.Add(-max(2*blockTime, minSendMargin))
	if end := i.Quote.ExpiresAt; !end.IsZero() && end.Before(by) {
		return end
	}
	return by
}
