package transfer

import (
	"errors"
	"math/big"
	"slices"
	"time"

	"intents.internal/core/registry"
	"intents.internal/pkg/wire"
)

// Signing is how an intent is authorized by a signature, which any account can send. The zero value is an intent whose user sends a transaction.
// The signature itself is neither here nor in lists, events and logs: whoever has it can open the order.
type Signing struct {
	Scheme wire.SigningScheme
	// SignedAt is when the last valid signature arrived, zero before the first.
	SignedAt time.Time
	// Submit means that the signed order is handed to the solver whose quote the intent was made from.
	Submit bool
	// Submitted is what became of that, nil before.
	Submitted *Submission
}

// Submission is the one attempt to hand a signed order to a solver.
type Submission struct {
	// Provider is the solver's name among the providers of quotes.
	Provider string
	// Status is a SubmissionStatus, or the code of a provider's failure where the solver gave no other answer.
	Status SubmissionStatus
	At     time.Time
	// Detail is what the solver says of the status, empty for nothing.
	Detail string
}

// SubmissionStatus is what a solver makes of an order.
type SubmissionStatus string

// The statuses of a solver's own answers.
const (
	// SubmissionReceived promises nothing.
	SubmissionReceived SubmissionStatus = "received"
	SubmissionRejected SubmissionStatus = "rejected"
	SubmissionError    SubmissionStatus = "error"
	// SubmissionFailed means that the solver could not open or fill the order, and will not try again.
	SubmissionFailed SubmissionStatus = "failed"
)

// The reasons of SigningNotSupported.
const (
	signingNative     = "native"
	signingToken      = "token"
	signingSettlement = "settlement"
)

// checkSigning rejects a request to sign that nothing can execute. It is asked after a deployment was found that executes the order; signable
// means that one takes signatures of the scheme.
func (d *draft) checkSigning(signable bool) error {
	scheme := d.request.Signing
	refuse := func(reason, form string, args ...any) error {
		return reject(SigningNotSupported, form, args...).at("/signing").because(reason)
	}
	token, _ := d.known.Token(d.source.Token)
	switch {
	case scheme == "":
		return nil
	case registry.Native(d.source.Token):
		return refuse(signingNative, "The native token of %s cannot be moved by a signature; use its wrapped token, or leave signing out.", d.sourceChain.ID)
	case d.kind == Transfer && scheme == wire.Permit2:
		return refuse(signingSettlement, "A transfer has no settlement that takes a Permit2 signature; use erc3009 where the token has it, or leave signing out.")
	case token.FeeOnTransfer:
		return refuse(signingToken, "Token %s takes a fee on transfers, so an order with it could not be refunded; leave signing out.", token.Symbol)
	case scheme == wire.ERC3009 && !authorizes(token, d.kind):
		return refuse(signingToken, "Token %s is not known to take ERC-3009 authorizations for a %s; GET /v2/tokens says which do.", token.Symbol, d.kind)
	case d.kind != Transfer && !signable:
		return refuse(signingSettlement, "No deployment that executes this %s takes signatures of %s; GET /v2/chains says which do.", d.kind, scheme)
	default:
		return nil
	}
}

// authorizes reports whether a token's authorizations can execute an intent of a type. Settlers call the form with bytes alone.
func authorizes(token registry.Token, kind Type) bool {
	return token.ERC3009 != nil && (kind == Transfer || token.ERC3009.Form == registry.BytesForm)
}

// takesSignatures reports whether a deployment's input settler can be given the signature that the request asks for.
func (d *draft) takesSignatures(origin registry.Settlement) bool {
	return d.request.Signing == "" || slices.Contains(origin.Signing, d.request.Signing)
}

// Signable returns nil while a signature of the intent is taken.
func (i *Intent) Signable(m Moment) error {
	switch err := i.Sendable(m); {
	case errors.Is(err, ErrSimulated):
		return err
	case i.Signing.Scheme == "", i.Status != Created, err != nil:
		return ErrNotSendable
	default:
		return nil
	}
}

// Relayable returns nil while a signed intent's transaction may be sent. An intent that was signed in time stays so after its quote has ended.
func (i *Intent) Relayable(m Moment) error {
	unquoted := *i
	unquoted.Quote = Quote{}
	return unquoted.Sendable(m)
}

// Signature is what the user of an intent signs, and what goes with it.
type Signature struct {
	Signing
	// Digest is what is signed, zero where the registry has the token's domain no more.
	Digest [32]byte
	// TypedData is nil if the intent must not be signed now, also where Digest is known.
	TypedData *TypedData
	// ExpiresAt is until when it may be signed.
	ExpiresAt time.Time
	// Allowance is what Permit2 needs, nil for another scheme.
	Allowance *Allowance
	// Permit grants the allowance by a signature; nil where the token has no permits or its nonce is not known.
	Permit *TypedData
	// Revoke makes every signature that was given worthless, nil where none was or the intent was not cancelled.
	Revoke *Revocation
}

// Revocation is a transaction of the user, or what the user signs for the token's cancelAuthorization. One of them is nil.
type Revocation struct {
	Tx        *Tx
	TypedData *TypedData
}

// SignatureAt returns what the user signs at the moment, nil for an intent whose user sends a transaction and for one without an order.
func (i *Intent) SignatureAt(order *Order, m Moment) (*Signature, error) {
	if i.Signing.Scheme == "" || order == nil {
		return nil, nil //nolint:nilnil // nothing is signed
	}
	s := &Signature{Signing: i.Signing, ExpiresAt: i.SendBy(m.BlockTime)}
	typed, err := i.typedData(order, m)
	if err != nil || typed == nil {
		return s, err
	}
	s.Digest = typed.Digest
	if i.Signable(m) == nil {
		s.TypedData = typed
	}
	if i.Signing.Scheme == wire.Permit2 {
		allowance, err := i.allowance(Permit2Address)
		if err != nil {
			return nil, err
		}
		s.Allowance = &allowance
	}
	if i.Status == Cancelled && !i.Signing.SignedAt.IsZero() {
		s.Revoke, err = i.revocation(order, m)
	}
	return s, err
}

// typedData is what the user of an intent signs, nil where the registry has the token's domain no more.
func (i *Intent) typedData(order *Order, m Moment) (*TypedData, error) {
	if i.Signing.Scheme == wire.Permit2 {
		return order.Permit2Permit()
	}
	a := i.authorization(m)
	if a == nil {
		return nil, nil //nolint:nilnil // there is no domain to sign in
	}
	return a.TypedData()
}

// authorization is what an intent of ERC-3009 authorizes, nil where the registry has the token's domain no more.
func (i *Intent) authorization(m Moment) *Authorization {
	if m.Token.ERC3009 == nil {
		return nil
	}
	a := &Authorization{
		Domain: TokenDomain(i.Source.Token, m.Token.ERC3009.Domain()), From: i.Source.Account.Address, To: i.Destination.Account.Address, Value: i.Source.Amount,
		Before: uint32(i.Deadline.Unix()), Nonce: i.OrderID, //nolint:gosec // New rejects what does not fit
	}
	if i.Type != Transfer {
		a.To, a.Payee = i.Settlement.InputSettler, true
	}
	return a
}

// RelayTx is the transaction that executes a signed intent, nil if it must not be sent: see Relayable. Any account may send it.
func (i *Intent) RelayTx(order *Order, m Moment, signature []byte) (*Tx, error) {
	if i.Relayable(m) != nil {
		return nil, nil //nolint:nilerr // there is no transaction, and Relayable says why
	}
	call, err := i.relayCall(order, m, signature)
	if err != nil {
		return nil, err
	}
	return &Tx{Call: call, Chain: i.Source.Account.Chain}, nil
}

func (i *Intent) relayCall(order *Order, m Moment, signature []byte) (Call, error) {
	if i.Type != Transfer {
		return order.OpenFor(i.Signing.Scheme, signature)
	}
	a := i.authorization(m) // without a domain it is not relayable
	return a.Call(signature, m.Token.ERC3009.Form == registry.VRSForm)
}

// AuthorizationCalls are what a token is asked about the authorization of an intent that is Sendable: whether it was used or cancelled, and, where the
// signature is known, the call that moves the tokens, which from would send. The token tells its own reason there; a settler hides it.
func (i *Intent) AuthorizationCalls(m Moment, signature []byte) (state []byte, from string, move Call, err error) {
	a := i.authorization(m)
	if state, err = a.StateCall(); err != nil || len(signature) == 0 {
		return state, "", Call{}, err
	}
	if a.Payee {
		from = a.To
	}
	move, err = a.Call(signature, m.Token.ERC3009.Form == registry.VRSForm)
	return state, from, move, err
}

// PermitOf is what the user signs to grant an allowance (EIP-2612) with the token's nonce of the user, nil where the token has no permits.
func (i *Intent) PermitOf(a *Allowance, m Moment, nonce *big.Int) (*TypedData, error) {
	if a == nil || m.Token.EIP2612 == nil || nonce == nil {
		return nil, nil //nolint:nilnil // there is no permit
	}
	return permitOf(TokenDomain(i.Source.Token, *m.Token.EIP2612), *a, nonce, i.Deadline.Unix())
}

func (i *Intent) revocation(order *Order, m Moment) (*Revocation, error) {
	if i.Signing.Scheme == wire.Permit2 {
		call, err := order.invalidateNonce()
		return &Revocation{Tx: &Tx{Call: call, Chain: i.Source.Account.Chain, From: i.Source.Account.Address}}, err
	}
	a := i.authorization(m)
	if a == nil {
		return nil, nil //nolint:nilnil // there is no domain to sign in
	}
	typed, err := a.Cancel()
	return &Revocation{TypedData: typed}, err
}
