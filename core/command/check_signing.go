package command

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// What openFor of an input settler answers to orders that nobody has paid.
var (
	// invalidSigner is Permit2's: the signature is of another message than the one that the settler has built.
	invalidSigner = crypto.Keccak256([]byte("InvalidSigner()"))[:4]
	// signatureRefused is for an authorization that the token has refused, and invalidBalanceDelta for one that paid another amount. A settler with
	// neither cannot have taken the signature to the token.
	signatureRefused    = crypto.Keccak256([]byte("SignatureAndInputsNotEqual()"))[:4]
	invalidBalanceDelta = crypto.Keccak256([]byte("InvalidBalanceDelta(uint256,uint256)"))[:4]
)

// transferFromFailed is Permit2's text for a right signature without tokens or allowance.
const transferFromFailed = "TRANSFER_FROM_FAILED"

// probeKey is a throw-away key, whose account owns nothing.
type probeKey struct{ *ecdsa.PrivateKey }

func newProbeKey() (probeKey, error) {
	key, err := crypto.GenerateKey()
	return probeKey{key}, err
}

func (k probeKey) address() common.Address { return crypto.PubkeyToAddress(k.PublicKey) }

// sign returns r, s and v, which is 27 or 28.
func (k probeKey) sign(t *transfer.TypedData) ([]byte, error) {
	signature, err := crypto.Sign(t.Digest[:], k.PrivateKey)
	if err != nil {
		return nil, err
	}
	signature[crypto.RecoveryIDOffset] += 27
	return signature, nil
}

// chainTokens are the tokens that signing is tried with on a chain.
type chainTokens struct {
	chain caip.ChainID
	// any is an ERC-20 token, and wrapped the wrapped native token, which answers calls that it does not know with success; nil for none.
	any, wrapped *registry.Token
	// authorized are those that input settlers can take by ERC-3009.
	authorized []registry.Token
}

// signingTokens finds the wrapped native token by its symbol: the chain's WrappedNative, else W and that of the native currency, else WETH.
func signingTokens(c *registry.Chain, tokens []registry.Token) chainTokens {
	found := chainTokens{chain: c.ID}
	bySymbol := func(symbol string) *registry.Token {
		for _, t := range tokens {
			if t.Symbol == symbol && !registry.Native(t.ID) {
				return &t
			}
		}
		return nil
	}
	symbols := []string{"W" + c.NativeCurrency.Symbol, "WETH"}
	if c.WrappedNative != "" {
		symbols = []string{c.WrappedNative}
	}
	for _, symbol := range symbols {
		if found.wrapped == nil {
			found.wrapped = bySymbol(symbol)
		}
	}
	found.any = found.wrapped
	for _, t := range tokens {
		if found.any == nil && !registry.Native(t.ID) {
			found.any = &t
		}
		if t.ERC3009 != nil && t.ERC3009.Form == registry.BytesForm {
			found.authorized = append(found.authorized, t)
		}
	}
	return found
}

// signingCheck is what is asked of the input settler of one settlement.
type signingCheck struct {
	registry.Settlement
	// permit2 opens an order that is rightly signed for Permit2, forged one that is signed by another key, and unpaid one of the wrapped native token
	// with an empty authorization. They are nil where there is no token to try with.
	permit2, forged, unpaid *rpc.Call[[]byte]
}

// checkSigning asks, all in one batch, which schemes of signing the input settlers of settlements take. A scheme that is claimed and not proven is a
// problem.
func (f *finding) checkSigning(ctx context.Context, p *rpc.Provider, tokens chainTokens, settlements []registry.Settlement) {
	if len(settlements) == 0 {
		return
	}
	code := rpc.Code(common.HexToAddress(transfer.Permit2Address), rpc.Latest)
	calls := []rpc.Request{code}
	checks := make([]signingCheck, len(settlements))
	for n, s := range settlements {
		c, err := newSigningCheck(s, tokens)
		if err != nil {
			f.problem("%s: signing: %v", s.Deployment, err)
			return
		}
		for _, call := range []*rpc.Call[[]byte]{c.permit2, c.forged, c.unpaid} {
			if call != nil {
				calls = append(calls, call)
			}
		}
		checks[n] = c
	}
	_ = ask(ctx, p, calls...) // the errors of its calls are judged one by one
	for _, c := range checks {
		f.judgeSigning(ctx, p, tokens, c, code)
	}
}

func newSigningCheck(s registry.Settlement, tokens chainTokens) (signingCheck, error) {
	c := signingCheck{Settlement: s}
	user, err := newProbeKey()
	if err != nil {
		return c, err
	}
	stranger, err := newProbeKey()
	if err != nil {
		return c, err
	}
	for _, probe := range []struct {
		token  *registry.Token
		signer *probeKey
		call   **rpc.Call[[]byte]
	}{{tokens.any, &user, &c.permit2}, {tokens.any, &stranger, &c.forged}, {tokens.wrapped, nil, &c.unpaid}} {
		if probe.token == nil {
			continue
		}
		if *probe.call, err = openForProbe(s, user, probe.token.ID, probe.signer); err != nil {
			return c, err
		}
	}
	return c, nil
}

// openForProbe is a call of openFor for an order that its user cannot pay: signed for Permit2 by a key, or for nil with an empty authorization of
// ERC-3009.
func openForProbe(s registry.Settlement, user probeKey, token caip.AccountID, signer *probeKey) (*rpc.Call[[]byte], error) {
	order, err := probeIntent(s, caip.AccountID{Chain: token.Chain, Address: user.address().Hex()}, token, time.Now()).Order()
	if err != nil {
		return nil, err
	}
	scheme, signature := wire.ERC3009, []byte(nil)
	if signer != nil {
		scheme = wire.Permit2
		typed, err := order.Permit2Permit()
		if err != nil {
			return nil, err
		}
		if signature, err = signer.sign(typed); err != nil {
			return nil, err
		}
	}
	call, err := order.OpenFor(scheme, signature)
	if err != nil {
		return nil, err
	}
	return rpc.CallContract(rpc.Message{From: user.address(), To: common.HexToAddress(call.To), Data: call.Data}, rpc.Latest), nil
}

// judgeSigning compares what the answers to a check prove with what the settlement claims.
func (f *finding) judgeSigning(ctx context.Context, p *rpc.Provider, tokens chainTokens, c signingCheck, permit2Code *rpc.Call[[]byte]) {
	opensUnpaid := c.opensUnpaid()
	missing := map[wire.SigningScheme]string{wire.Permit2: c.permit2Missing(permit2Code), wire.ERC3009: c.erc3009Missing()}
	if opensUnpaid && slices.Contains(c.Signing, wire.ERC3009) {
		missing[wire.ERC3009] = unprovenTokens(ctx, p, tokens.authorized, c.Settlement)
	}
	var proven []string
	for _, scheme := range wire.SigningSchemes {
		switch {
		case missing[scheme] == "":
			proven = append(proven, string(scheme))
		case slices.Contains(c.Signing, scheme):
			f.problem("%s: signing claims %s, which is not proven: %s", c.Deployment, scheme, missing[scheme])
		}
	}
	cell := c.Deployment + " " + strings.Join(proven, ",")
	if len(proven) == 0 {
		cell += "none"
	}
	if opensUnpaid {
		cell += " (opens unpaid orders)"
	}
	f.signing = append(f.signing, cell)
	if opensUnpaid && len(c.Signing) > 0 {
		f.notes = append(f.notes, fmt.Sprintf("%s: openFor of the input settler %s opens an order of %s that nobody has paid; "+
			"core counts an opening only with its deposit, and erc3009 is right for tokens alone that core tokens check proves",
			c.Deployment, c.InputSettler, tokens.wrapped.Symbol))
	}
}

// opensUnpaid reports whether the input settler takes a token's silence for a payment.
func (c signingCheck) opensUnpaid() bool { return c.unpaid != nil && c.unpaid.Err() == nil }

// permit2Missing returns why Permit2's signatures cannot be used, or "".
func (c signingCheck) permit2Missing(permit2Code *rpc.Call[[]byte]) string {
	code, err := permit2Code.Result()
	switch {
	case err != nil:
		return fmt.Sprintf("code of Permit2: %v", err)
	case len(code) == 0:
		return "no code at Permit2 " + transfer.Permit2Address
	case c.permit2 == nil:
		return "no ERC-20 token of the chain is registered to try it with"
	case c.permit2.Err() == nil:
		return "openFor takes an order that nobody has paid"
	}
	data, reverted := revertData(c.permit2.Err())
	forged, _ := revertData(c.forged.Err())
	text, _ := abi.UnpackRevert(data)
	switch {
	case !reverted:
		return c.permit2.Err().Error()
	case text == transferFromFailed && bytes.Equal(forged, invalidSigner):
		return ""
	case text == transferFromFailed:
		return "openFor does not refuse another account's signature"
	case bytes.Equal(data, invalidSigner):
		return "openFor takes signatures of another witness than the one with the order's user, so that others could open orders with the user's tokens"
	}
	return transfer.RevertReason(data)
}

// erc3009Missing returns why authorizations of tokens cannot be used, or "".
func (c signingCheck) erc3009Missing() string {
	if c.unpaid == nil {
		return "no wrapped native token of the chain is registered to try it with: wrappedNative of the chain names it"
	}
	if c.unpaid.Err() == nil {
		return ""
	}
	return authorizationUnread(c.unpaid)
}

// authorizationUnread returns why the answer to an empty authorization does not show that the settler has taken it to the token, or "".
func authorizationUnread(opening *rpc.Call[[]byte]) string {
	data, reverted := revertData(opening.Err())
	switch {
	case opening.Err() == nil:
		return "openFor takes an empty authorization"
	case !reverted:
		return opening.Err().Error()
	case bytes.Equal(data, signatureRefused), bytes.HasPrefix(data, invalidBalanceDelta):
		return ""
	}
	return transfer.RevertReason(data)
}

// revertData returns the data of a reverted call; reverted is false for any other error and for none.
func revertData(err error) (data []byte, reverted bool) {
	answer, ok := errors.AsType[*rpc.Error](err)
	if !ok || !errors.Is(err, rpc.ErrReverted) {
		return nil, false
	}
	return answer.Data, true
}

// unprovenTokens returns why tokens cannot be taken by authorizations to an input settler that opens unpaid orders, or "".
func unprovenTokens(ctx context.Context, p *rpc.Provider, tokens []registry.Token, s registry.Settlement) string {
	if len(tokens) == 0 {
		return ""
	}
	user, err := newProbeKey()
	if err != nil {
		return err.Error()
	}
	openings := make([]*rpc.Call[[]byte], len(tokens))
	var calls []rpc.Request
	for n, t := range tokens {
		if openings[n], err = openForProbe(s, user, t.ID, nil); err != nil {
			return err.Error()
		}
		calls = append(calls, openings[n])
	}
	_ = ask(ctx, p, calls...) // the errors of its calls are judged one by one
	probes, err := askTokens(ctx, p, tokens, s.InputSettler)
	if err != nil {
		return err.Error()
	}
	var reasons []string
	for n, probe := range probes {
		faults := probe.authorizationFaults()
		if unread := authorizationUnread(openings[n]); unread != "" {
			faults = append(faults, unread)
		}
		if len(faults) > 0 {
			reasons = append(reasons, fmt.Sprintf("%s %s: %s", probe.token.Symbol, probe.token.ID.Address, strings.Join(faults, ", ")))
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return "it opens unpaid orders, and tokens are not proven: " + strings.Join(reasons, "; ")
}
