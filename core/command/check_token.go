package command

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// domainSeparatorCall asks a token for the separator of its signing domain (EIP-2612).
var domainSeparatorCall = crypto.Keccak256([]byte("DOMAIN_SEPARATOR()"))[:4]

// tokenProbe is what is asked of one token that has data for signing.
type tokenProbe struct {
	token     registry.Token
	separator *rpc.Call[[]byte]
	// nonces is nil for a token without permits.
	nonces *rpc.Call[[]byte]
	// forms are empty for a token without authorizations.
	forms map[registry.AuthorizationForm]formProbe
}

// formProbe is an authorization of nothing, of an account that owns nothing: once rightly signed and once by another key.
type formProbe struct{ right, wrong *rpc.Call[[]byte] }

// askTokens asks, all in one batch, what tokens do with signatures. payee is who sends the authorizations, an input settler.
func askTokens(ctx context.Context, p *rpc.Provider, tokens []registry.Token, payee string) ([]tokenProbe, error) {
	var probes []tokenProbe
	var calls []rpc.Request
	for _, t := range tokens {
		probe, err := newTokenProbe(t, payee)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.ID, err)
		}
		probes = append(probes, probe)
		calls = append(calls, probe.calls()...)
	}
	if len(calls) > 0 {
		_ = ask(ctx, p, calls...) // the errors of its calls are judged one by one
	}
	return probes, nil
}

func newTokenProbe(t registry.Token, payee string) (probe tokenProbe, err error) {
	contract := common.HexToAddress(t.ID.Address)
	probe = tokenProbe{token: t, separator: rpc.CallContract(rpc.Message{To: contract, Data: domainSeparatorCall}, rpc.Latest)}
	if t.EIP2612 != nil {
		data, err := transfer.NoncesCall(payee)
		if err != nil {
			return probe, err
		}
		probe.nonces = rpc.CallContract(rpc.Message{To: contract, Data: data}, rpc.Latest)
	}
	if t.ERC3009 == nil {
		return probe, nil
	}
	probe.forms = map[registry.AuthorizationForm]formProbe{}
	for _, form := range []registry.AuthorizationForm{registry.BytesForm, registry.VRSForm} {
		if probe.forms[form], err = newFormProbe(t, payee, form); err != nil {
			return probe, err
		}
	}
	return probe, nil
}

func newFormProbe(t registry.Token, payee string, form registry.AuthorizationForm) (probe formProbe, err error) {
	owner, err := newProbeKey()
	if err != nil {
		return probe, err
	}
	stranger, err := newProbeKey()
	if err != nil {
		return probe, err
	}
	authorization := transfer.Authorization{
		Domain: transfer.TokenDomain(t.ID, t.ERC3009.Domain()), From: owner.address().Hex(), To: payee, Payee: true, Value: new(big.Int),
		Before: uint32(time.Now().Add(time.Hour).Unix()), //nolint:gosec // G115: until 2106
		Nonce:  crypto.Keccak256Hash(stranger.address().Bytes()),
	}
	typed, err := authorization.TypedData()
	if err != nil {
		return probe, err
	}
	for _, c := range []struct {
		signer probeKey
		call   **rpc.Call[[]byte]
	}{{owner, &probe.right}, {stranger, &probe.wrong}} {
		signature, err := c.signer.sign(typed)
		if err != nil {
			return probe, err
		}
		call, err := authorization.Call(signature, form == registry.VRSForm)
		if err != nil {
			return probe, err
		}
		*c.call = rpc.CallContract(rpc.Message{From: common.HexToAddress(payee), To: common.HexToAddress(call.To), Data: call.Data}, rpc.Latest)
	}
	return probe, nil
}

func (p tokenProbe) calls() []rpc.Request {
	calls := []rpc.Request{p.separator}
	if p.nonces != nil {
		calls = append(calls, p.nonces)
	}
	for _, form := range p.forms {
		calls = append(calls, form.right, form.wrong)
	}
	return calls
}

// faults tells where the token's data claim more than its answers prove.
func (p tokenProbe) faults() []string {
	faults := p.authorizationFaults()
	if p.token.EIP2612 == nil {
		return faults
	}
	if fault := p.separatorFault(*p.token.EIP2612); fault != "" {
		faults = append(faults, "eip2612: "+fault)
	}
	if nonce, err := p.nonces.Result(); err != nil {
		faults = append(faults, fmt.Sprintf("eip2612: nonces(): %v", err))
	} else if len(nonce) != common.HashLength {
		faults = append(faults, fmt.Sprintf("eip2612: nonces() answers 0x%x, not a number", nonce[:min(len(nonce), common.HashLength)]))
	}
	return faults
}

func (p tokenProbe) authorizationFaults() (faults []string) {
	if p.token.ERC3009 == nil {
		return nil
	}
	if fault := p.separatorFault(p.token.ERC3009.Domain()); fault != "" {
		faults = append(faults, "erc3009: "+fault)
	}
	form := p.token.ERC3009.Form
	if fault := p.forms[form].fault(); fault != "" {
		faults = append(faults, fmt.Sprintf("erc3009, form %q: %s", form, fault))
		for other, probe := range p.forms {
			if other != form && probe.fault() == "" {
				faults = append(faults, fmt.Sprintf("its form is %q", other))
			}
		}
	}
	return faults
}

func (p tokenProbe) separatorFault(d registry.EIP712Domain) string {
	answer, err := p.separator.Result()
	if err != nil {
		return fmt.Sprintf("DOMAIN_SEPARATOR(): %v", err)
	}
	want, err := transfer.TokenDomain(p.token.ID, d).Separator()
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(answer, want[:]) {
		return fmt.Sprintf("DOMAIN_SEPARATOR() answers 0x%x, which is not of the name %q and version %q",
			answer[:min(len(answer), common.HashLength)], d.Name, d.Version)
	}
	return ""
}

// fault returns why the answers do not show that the token checks signatures, or "".
func (p formProbe) fault() string {
	right, wrong := p.right.Err(), p.wrong.Err()
	data, reverted := revertData(right)
	_, refused := revertData(wrong)
	switch {
	case right == nil && wrong == nil:
		return "receiveWithAuthorization takes any signature, as a wrapped coin does that ignores calls which it does not know"
	case right == nil && refused:
		return ""
	case right == nil:
		return wrong.Error()
	case !reverted:
		return right.Error()
	}
	return "receiveWithAuthorization refuses a right signature: " + transfer.RevertReason(data)
}
