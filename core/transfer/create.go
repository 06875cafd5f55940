package transfer

import (
	"math/big"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/chain"
	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// How long an intent may wait to be filled, counted from its creation.
const (
	DefaultLifetime = time.Hour
	ShortestLife    = time.Minute
	LongestLife     = 7 * 24 * time.Hour
)

const zeroAddress = "0x0000000000000000000000000000000000000000"

// Caller is on whose behalf an intent is made.
type Caller struct {
	AccountID   uuid.UUID
	KeyID       uuid.UUID
	Environment network.Environment
}

// WrongEnvironment finds the first chain the request names that keys of env may not use. Chains the registry does not
// know have no environment and are passed over.
func WrongEnvironment(r wire.TransferRequest, known *registry.Snapshot, env network.Environment) (chain.Chain, bool) {
	for _, id := range r.Chains() {
		if c, ok := known.Chain(id); ok && c.Environment != env {
			return c, true
		}
	}
	return chain.Chain{}, false
}

// New decides what a request means and makes the intent for it, or returns a *Rejection. Its id must be a fresh
// UUIDv7; deadlines are counted from the id's time.
func New(id uuid.UUID, caller Caller, r wire.TransferRequest, known *registry.Snapshot) (*Intent, error) {
	p := proposal{request: r, known: known}
	if err := p.resolve(); err != nil {
		return nil, err
	}
	created := idTime(id)
	deadline, err := lifetime(r.Deadline, created)
	if err != nil {
		return nil, err
	}
	route, err := p.route()
	if err != nil {
		return nil, err
	}
	intent := &Intent{
		ID: id, AccountID: caller.AccountID, KeyID: caller.KeyID,
		Type: p.kind, Status: Created,
		Source: p.source, Destination: p.destination, Route: route,
		Deadline: deadline, Reference: r.Reference,
		CreatedAt: created, UpdatedAt: created,
	}
	order, err := intent.Order()
	if err != nil {
		return nil, err
	}
	intent.OrderID = order.ID()
	return intent, nil
}

// proposal is a request on its way to an intent.
type proposal struct {
	request                       wire.TransferRequest
	known                         *registry.Snapshot
	sourceChain, destinationChain chain.Chain
	source, destination           Leg
	kind                          Type
}

// resolve fills the proposal in, step by step in the order in which a client is told of its faults.
func (p *proposal) resolve() error {
	for _, step := range []func() error{p.chains, p.tokens, p.amounts, p.recipient, p.infer} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *proposal) chains() error {
	for _, id := range p.request.Chains() {
		if _, ok := p.known.Chain(id); !ok {
			return reject(UnsupportedChain, "Chain %s is not supported; GET /v2/chains lists those that are.", id)
		}
	}
	p.sourceChain, _ = p.known.Chain(p.request.Source.Account.Chain)
	p.destinationChain, _ = p.known.Chain(p.request.Destination.Account.Chain)
	return nil
}

func (p *proposal) tokens() error {
	p.source.Account, p.destination.Account = p.request.Source.Account, p.request.Destination.Account
	p.source.Token, p.destination.Token = p.request.Source.Token, p.request.Destination.Token
	if p.destination.Token == (caip.AccountID{}) {
		p.destination.Token = p.source.Token
	}
	if err := oneChain("source", p.source); err != nil {
		return err
	}
	if err := oneChain("destination", p.destination); err != nil {
		return err
	}
	for _, id := range []caip.AccountID{p.source.Token, p.destination.Token} {
		if _, ok := p.known.Token(id); !ok {
			return reject(UnknownToken, "Token %s is not in the registry; GET /v2/tokens lists those that are.", id)
		}
	}
	return nil
}

func oneChain(side string, leg Leg) error {
	if leg.Token.Chain == leg.Account.Chain {
		return nil
	}
	return reject(ChainMismatch, "The %s account is on %s but its token on %s; both must be on one chain.",
		side, leg.Account.Chain, leg.Token.Chain)
}

func (p *proposal) amounts() (err error) {
	if p.source.Amount, err = parseAmount("source", p.request.Source.Amount); err != nil {
		return err
	}
	if p.request.Destination.Amount != "" {
		p.destination.Amount, err = parseAmount("destination", p.request.Destination.Amount)
	}
	return err
}

func parseAmount(side, digits string) (*big.Int, error) {
	// 78 digits hold 2^256-1; more would only cost time to parse.
	amount, ok := new(big.Int), false
	if len(digits) <= 78 {
		amount, ok = amount.SetString(digits, 10)
	}
	if !ok || amount.Sign() <= 0 || amount.BitLen() > 256 {
		return nil, reject(InvalidAmount, "The %s amount must be between 1 and 2^256-1 of the token's smallest unit.", side)
	}
	return amount, nil
}

func (p *proposal) recipient() error {
	switch p.destination.Account.Address {
	case zeroAddress:
		return reject(InvalidRecipient, "The destination account is the zero address; what is sent there is lost.")
	case p.destination.Token.Address:
		return reject(InvalidRecipient, "The destination account is the token itself; what is sent there is lost.")
	}
	if p.source.Account.Address == zeroAddress {
		return reject(InvalidRecipient, "The source account is the zero address, which nobody can sign for.")
	}
	return nil
}

// infer compares chains and token addresses, never symbols.
func (p *proposal) infer() error {
	switch {
	case p.sourceChain.ID != p.destinationChain.ID:
		p.kind = Bridge
	case p.source.Token != p.destination.Token:
		p.kind = Swap
	case p.source.Account == p.destination.Account:
		return reject(SelfTransfer, "Source and destination are the same account and token.")
	default:
		p.kind = Transfer
	}
	if p.kind == Transfer {
		if p.destination.Amount != nil && p.destination.Amount.Cmp(p.source.Amount) != 0 {
			return reject(DestinationAmountNotAllowed,
				"A transfer delivers what it sends: leave destination.amount out or make it equal to source.amount.")
		}
		p.destination.Amount = p.source.Amount
	}
	if p.destination.Amount == nil {
		return reject(DestinationAmountRequired, "A %s needs destination.amount, the least that may arrive.", p.kind)
	}
	return nil
}

func lifetime(deadline, created time.Time) (time.Time, error) {
	deadline = wholeDeadline(deadline, created)
	if deadline.Before(created.Add(ShortestLife)) || deadline.After(created.Add(LongestLife)) {
		return time.Time{}, reject(InvalidDeadline, "The deadline must be 60 seconds to 7 days from now.")
	}
	return deadline, nil
}

// wholeDeadline fills in the default and drops fractions of a second.
func wholeDeadline(deadline, created time.Time) time.Time {
	if deadline.IsZero() {
		deadline = created.Add(DefaultLifetime)
	}
	return deadline.Truncate(time.Second)
}

// Answers tells whether the intent is what the request asks for, whatever its spelling and whether or not it writes
// defaults out. Every field of a request is kept in the intent, so the request itself need not be.
func (i *Intent) Answers(r wire.TransferRequest) bool {
	if r.Destination.Token == (caip.AccountID{}) {
		r.Destination.Token = r.Source.Token
	}
	if r.Destination.Amount == "" && i.Type == Transfer {
		r.Destination.Amount = r.Source.Amount
	}
	return i.Source.isOf(r.Source) && i.Destination.isOf(r.Destination) &&
		i.Deadline.Equal(wholeDeadline(r.Deadline, idTime(i.ID))) && i.Reference == r.Reference
}

func (l Leg) isOf(r wire.Leg) bool {
	return l.Account == r.Account && l.Token == r.Token && l.Amount.String() == r.Amount
}

// route picks the settlers. A record that nobody could execute is never made.
func (p *proposal) route() (Route, error) {
	route := Route{OriginDomain: p.sourceChain.Domain, DestinationDomain: p.destinationChain.Domain}
	if p.kind == Transfer {
		return route, nil
	}
	for _, c := range []chain.Chain{p.sourceChain, p.destinationChain} {
		if c.Settler == nil {
			return Route{}, reject(SettlerNotConfigured, "No settler is configured on %s, so no %s can be executed there.", c.ID, p.kind)
		}
	}
	if p.kind == Swap && !p.sourceChain.Settler.SameChain {
		return Route{}, reject(SettlerNotConfigured,
			"The settler on %s cannot fill an order on its own chain, so no swap can be executed there.", p.sourceChain.ID)
	}
	route.OriginSettler = p.sourceChain.Settler.Address
	route.DestinationSettler = p.destinationChain.Settler.Address
	return route, nil
}
