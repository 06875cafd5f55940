package transfer

import (
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// How long an intent may wait to be filled, counted from its creation. DefaultLifetime is that of a request without a deadline, unless its
// source chain needs more.
const (
	DefaultLifetime = time.Hour
	ShortestLife    = time.Minute
	LongestLife     = 7 * 24 * time.Hour
	// A signature is a free option of whoever has it, so a signed intent waits for a shorter time.
	DefaultSignedLifetime = 10 * time.Minute
	LongestSignedLife     = time.Hour
	// DefaultSubmittedLifetime is that of an order which is handed to a solver: the framework's refuses those with less than 20 minutes left.
	DefaultSubmittedLifetime = 30 * time.Minute
)

// Caller is the owner of the intent that a request creates.
type Caller struct {
	AccountID   uuid.UUID
	KeyID       uuid.UUID
	Environment network.Environment
}

// WrongEnvironment returns the first chain in the request that keys of env may not use. Chains that are not in the registry have
// no environment and are skipped.
func WrongEnvironment(r wire.TransferRequest, known *registry.Snapshot, env network.Environment) (registry.Chain, bool) {
	for _, id := range r.Chains() {
		if c, ok := known.Chain(id); ok && c.Environment != env {
			return c, true
		}
	}
	return registry.Chain{}, false
}

// New creates the intent of a request, or returns a *Rejection. The id must be a new UUIDv7; deadlines are counted from its time.
func New(id uuid.UUID, caller Caller, r wire.TransferRequest, known *registry.Snapshot) (*Intent, error) {
	intent, _, err := NewWithOrder(id, caller, r, known)
	return intent, err
}

// NewWithOrder is New, and returns the intent's order as well, so that it is encoded only once.
func NewWithOrder(id uuid.UUID, caller Caller, r wire.TransferRequest, known *registry.Snapshot) (*Intent, *Order, error) {
	d := draft{request: r, known: known}
	if err := d.resolve(); err != nil {
		return nil, nil, err
	}
	created := idTime(id)
	deadline, err := d.deadline(created)
	if err != nil {
		return nil, nil, err
	}
	settlement, err := d.settlement(deadline)
	if err != nil {
		return nil, nil, err
	}
	if r.Submit {
		return nil, nil, RejectSubmit()
	}
	return d.intent(id, caller, deadline, settlement, Quote{})
}

// NewQuoted creates the intent that a quote makes: with the quote's deadline and contracts, whatever the registry prefers now, or returns a
// *Rejection where the registry has these contracts no more. The request has both amounts of the quote. Its deadline may be missing for an intent
// that is signed, which then has a default of its own.
func NewQuoted(
	id uuid.UUID, caller Caller, r wire.TransferRequest, known *registry.Snapshot, settlement Settlement, q Quote,
) (*Intent, *Order, error) {
	d := draft{request: r, known: known}
	if err := d.resolve(); err != nil {
		return nil, nil, err
	}
	p, ok := d.find(settlement)
	if !ok {
		return nil, nil, reject(SettlerNotConfigured, "The deployment %s that this quote is for was removed or replaced since; ask for a new quote.", settlement.Deployment)
	}
	if r.Signing == "" {
		return d.intent(id, caller, r.Deadline, settlement, q)
	}
	if err := d.checkSigning(d.takesSignatures(p.origin)); err != nil {
		return nil, nil, err
	}
	d.quoted = &p
	deadline, err := d.deadline(idTime(id))
	if err != nil {
		return nil, nil, err
	}
	if settlement, err = d.settlementOf(p, deadline); err != nil {
		return nil, nil, err
	}
	return d.intent(id, caller, deadline, settlement, q)
}

// intent builds the intent of a resolved draft.
func (d *draft) intent(id uuid.UUID, caller Caller, deadline time.Time, settlement Settlement, q Quote) (*Intent, *Order, error) {
	created := idTime(id)
	intent := &Intent{
		ID: id, AccountID: caller.AccountID, KeyID: caller.KeyID, Environment: d.sourceChain.Environment,
		Type: d.kind, Status: Created,
		Source: d.source, Destination: d.destination, Settlement: settlement, Quote: q,
		Signing:  Signing{Scheme: d.request.Signing, Submit: d.request.Submit},
		Deadline: deadline, Reference: d.request.Reference, Labels: d.request.Labels,
		CreatedAt: created, UpdatedAt: created,
	}
	order, err := intent.Order()
	if err != nil {
		return nil, nil, err
	}
	intent.OrderID = order.ID()
	return intent, order, nil
}

// draft is the partly resolved intent of a request.
type draft struct {
	request                       wire.TransferRequest
	known                         *registry.Snapshot
	sourceChain, destinationChain registry.Chain
	source, destination           Leg
	kind                          Type
	// quoting means that one of the amounts is asked for.
	quoting bool
	// quoted is the deployment that a quote is for, nil without a quote.
	quoted *deployment
}

// resolve fills the draft, in the order in which errors are reported.
func (d *draft) resolve() error {
	for _, step := range []func() error{d.chains, d.tokens, d.amounts, d.recipient, d.infer} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) chains() error {
	for _, id := range d.request.Chains() {
		if _, ok := d.known.Chain(id); !ok {
			return reject(UnsupportedChain, "Chain %s is not supported; GET /v2/chains lists those that are.", id).at(d.request.PathOf(id))
		}
	}
	for _, id := range d.request.Chains() {
		if !d.known.TakesIntents(id) {
			return reject(ChainNotWatched, "Nobody follows chain %s here now, so it takes no intents; GET /v2/chains says which chains are watched.", id).
				at(d.request.PathOf(id))
		}
	}
	d.sourceChain, _ = d.known.Chain(d.request.Source.Account.Chain)
	d.destinationChain, _ = d.known.Chain(d.request.Destination.Account.Chain)
	return nil
}

func (d *draft) tokens() error {
	d.source.Account, d.destination.Account = d.request.Source.Account, d.request.Destination.Account
	d.source.Token, d.destination.Token = d.request.Source.Token, d.request.Destination.Token
	if d.destination.Token == (caip.AccountID{}) {
		d.destination.Token = d.source.Token
	}
	if err := oneChain("source", d.source); err != nil {
		return err
	}
	if err := oneChain("destination", d.destination); err != nil {
		return err
	}
	if err := d.token("source", d.source.Token); err != nil {
		return err
	}
	return d.token("destination", d.destination.Token)
}

func (d *draft) token(side string, id caip.AccountID) error {
	if _, ok := d.known.Token(id); !ok {
		return reject(UnknownToken, "Token %s is not in the registry; GET /v2/tokens lists those that are.", id).at("/" + side + "/token")
	}
	return nil
}

func oneChain(side string, leg Leg) error {
	if leg.Token.Chain == leg.Account.Chain {
		return nil
	}
	return reject(ChainMismatch, "The %s account is on %s but its token on %s; both must be on one chain.",
		side, leg.Account.Chain, leg.Token.Chain).at("/" + side + "/token")
}

func (d *draft) amounts() (err error) {
	if d.request.Source.Amount != "" || !d.quoting {
		if d.source.Amount, err = parseAmount("source", d.request.Source.Amount); err != nil {
			return err
		}
	}
	if d.request.Destination.Amount != "" {
		d.destination.Amount, err = parseAmount("destination", d.request.Destination.Amount)
	}
	return err
}

func parseAmount(side, digits string) (*big.Int, error) {
	// 2^256-1 has 78 digits; longer texts are rejected unparsed.
	amount, ok := new(big.Int), false
	if len(digits) <= 78 {
		amount, ok = amount.SetString(digits, 10)
	}
	if !ok || amount.Sign() <= 0 || amount.BitLen() > 256 {
		return nil, reject(InvalidAmount, "The %s amount must be between 1 and 2^256-1 of the token's smallest unit.", side).at("/" + side + "/amount")
	}
	return amount, nil
}

// recipient rejects a destination account from which nobody can move what arrives: for every type, and for quotes too.
func (d *draft) recipient() error {
	to := d.destination.Account
	lost := func(what string, args ...any) error {
		return reject(InvalidRecipient, "The destination account is "+what+"; what is sent there is lost.", args...).at("/destination/account")
	}
	switch to.Address {
	case caip.ZeroAddress:
		return lost("the zero address")
	case registry.NativeAddress:
		return lost("the placeholder of the native token, which is no account")
	case d.destination.Token.Address:
		return lost("the token itself")
	}
	if listed, ok := d.known.Token(to); ok {
		return lost("the contract of the token %s", listed.Symbol)
	}
	if d.known.SettlementContract(to) {
		return lost("a settler or oracle of %s, which pays out orders alone", to.Chain)
	}
	if d.source.Account.Address == caip.ZeroAddress {
		return reject(InvalidRecipient, "The source account is the zero address, which nobody can sign for.").at("/source/account")
	}
	return nil
}

// infer infers the type from chains and token addresses, never from symbols.
func (d *draft) infer() error {
	switch {
	case d.sourceChain.ID != d.destinationChain.ID:
		d.kind = Bridge
	case d.source.Token != d.destination.Token:
		d.kind = Swap
	case d.source.Account == d.destination.Account:
		return reject(SelfTransfer, "Source and destination are the same account and token.").at("/destination/account")
	default:
		d.kind = Transfer
	}
	if d.kind == Transfer && !d.quoting {
		if d.destination.Amount != nil && d.destination.Amount.Cmp(d.source.Amount) != 0 {
			return reject(DestinationAmountNotAllowed,
				"A transfer delivers what it sends: leave destination.amount out or make it equal to source.amount.").at("/destination/amount")
		}
		d.destination.Amount = d.source.Amount
	}
	if d.destination.Amount == nil && !d.quoting {
		return reject(DestinationAmountRequired, "A %s needs destination.amount, the least that may arrive.", d.kind).at("/destination/amount")
	}
	return nil
}

// deadline rejects a deadline that is too near or too far.
func (d *draft) deadline(created time.Time) (time.Time, error) {
	least := leastLifetime(d.kind, d.sourceChain, d.minDeadline())
	if d.quoting {
		least = wholeSeconds(least + leastValidity(d.sourceChain) + wire.MaxQuoteWait)
	}
	usual, longest, most := defaultLifetime(d.request, least, d.minDeadline()), LongestLife, "7 days"
	if d.request.Signing != "" {
		longest = max(LongestSignedLife, usual)
		most = fmt.Sprintf("%d seconds", longest/time.Second)
	}
	deadline := wholeDeadline(d.request.Deadline, created, usual)
	if deadline.Before(created.Add(least)) || deadline.After(created.Add(longest)) {
		return time.Time{}, reject(InvalidDeadline, "The deadline of a %s from %s must be %d seconds to %s from now.",
			d.kind, d.sourceChain.ID, least/time.Second, most).at("/deadline")
	}
	return deadline, nil
}

// leastLifetime is how far away a deadline must be, in whole seconds. An order must be open, at the depth of its source chain, a minute
// before its deadline, or no solver has time to fill it; the solvers of its deployment may need more.
func leastLifetime(kind Type, source registry.Chain, minDeadline time.Duration) time.Duration {
	least := ShortestLife
	if kind != Transfer {
		least += time.Duration(source.Confirmations) * source.BlockTime //nolint:gosec // both are bounded at import
	}
	return max(wholeSeconds(least), minDeadline)
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// defaultReserve is what the default deadline has over what solvers need.
const defaultReserve = time.Minute

// defaultLifetime is the longest of the usual lifetime, the least lifetime, with the second that a deadline loses where it is truncated, and what
// solvers need with a reserve.
func defaultLifetime(r wire.TransferRequest, least, minDeadline time.Duration) time.Duration {
	return max(usualLifetime(r), least+time.Second, minDeadline+defaultReserve)
}

func usualLifetime(r wire.TransferRequest) time.Duration {
	switch {
	case r.Submit:
		return DefaultSubmittedLifetime
	case r.Signing != "":
		return DefaultSignedLifetime
	default:
		return DefaultLifetime
	}
}

// wholeDeadline applies the default and truncates to whole seconds.
func wholeDeadline(deadline, created time.Time, lifetime time.Duration) time.Time {
	if deadline.IsZero() {
		deadline = created.Add(lifetime)
	}
	return deadline.Truncate(time.Second)
}

// Answers reports whether the intent matches the request; spelling and explicit defaults make no difference. The intent keeps
// every field of its request, so the request itself is not stored; First is read where the client may have changed its reference or
// labels since. source is the source chain as it is now: an import may have changed the default deadline since.
func (i *Intent) Answers(r wire.TransferRequest, source registry.Chain) bool {
	if r.Destination.Token == (caip.AccountID{}) {
		r.Destination.Token = r.Source.Token
	}
	if r.Destination.Amount == "" && i.Type == Transfer {
		r.Destination.Amount = r.Source.Amount
	}
	if quoted := i.Quote.ID != uuid.Nil; quoted != (r.QuoteID != "") || quoted && i.Quote.ID.String() != r.QuoteID {
		return false
	}
	// A quote has the sides and the deadline that a request leaves out.
	sides := r.QuoteID != "" && r.Source == (wire.Leg{}) && r.Destination == (wire.Leg{}) || i.Source.isOf(r.Source) && i.Destination.isOf(r.Destination)
	needed := minDeadlineOf(source, i.Settlement.Deployment)
	deadline := r.QuoteID != "" && r.Deadline.IsZero() || i.until(r.Deadline, usualLifetime(r)) ||
		i.until(r.Deadline, defaultLifetime(r, leastLifetime(i.Type, source, needed), needed))
	called := i.first() == Naming{Reference: r.Reference, Labels: r.Labels}
	return sides && deadline && called && i.Signing.Scheme == r.Signing && i.Signing.Submit == r.Submit
}

// until reports whether the intent has a deadline, or was given the default of a lifetime where there is none.
func (i *Intent) until(deadline time.Time, lifetime time.Duration) bool {
	return i.Deadline.Equal(wholeDeadline(deadline, idTime(i.ID), lifetime))
}

func (l Leg) isOf(r wire.Leg) bool {
	return l.Account == r.Account && l.Token == r.Token && l.Amount.String() == r.Amount
}
