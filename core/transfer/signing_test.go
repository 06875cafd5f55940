package transfer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

const (
	oldToken   = "0x00000000000000000000000000000000000000A1"
	taxedToken = "0x00000000000000000000000000000000000000A2"
)

// signable is the fixture's registry with what is signed there: deployment b takes Permit2, a both schemes; USDC has ERC-3009, WETH in the form that
// settlers do not call.
func signable() (here registry.Chain, known *registry.Snapshot) {
	here, there := twoDeployments()
	here.Settlements[0].Signing = []wire.SigningScheme{wire.Permit2}
	here.Settlements[2].Signing = []wire.SigningScheme{wire.ERC3009, wire.Permit2}
	token := func(chain caip.ChainID, address, symbol string, form registry.AuthorizationForm) registry.Token {
		t := registry.Token{ID: caip.AccountID{Chain: chain, Address: address}, Symbol: symbol}
		if form != "" {
			t.ERC3009 = &registry.ERC3009{Name: symbol, Version: "2", Form: form}
		}
		return t
	}
	taxed := token(sepolia, taxedToken, "TAX", registry.BytesForm)
	taxed.FeeOnTransfer = true
	return here, registry.NewSnapshot(1, []registry.Chain{here, there}, []registry.Token{
		token(sepolia, usdc, "USDC", registry.BytesForm), token(sepolia, weth, "WETH", registry.VRSForm), token(sepolia, registry.NativeAddress, "ETH", ""),
		taxed, token(sepolia, oldToken, "OLD", ""), token(baseSepolia, usdc, "USDC", ""), token(baseSepolia, weth, "WETH", ""),
	})
}

// The pick of the settlement skips those that do not take the scheme, and what nothing takes is rejected with the reason.
func TestNew_Signing(t *testing.T) {
	t.Parallel()
	here, known := signable()
	for name, c := range map[string]struct {
		kind   transfer.Type
		token  string
		scheme wire.SigningScheme
		change func(*wire.TransferRequest)
		want   string // the deployment, or the rejection
	}{
		"sent":                          {transfer.Bridge, usdc, "", nil, "b"},
		"by permit2":                    {transfer.Bridge, usdc, wire.Permit2, nil, "b"},
		"by erc3009":                    {transfer.Bridge, usdc, wire.ERC3009, nil, "a"},
		"a swap":                        {transfer.Swap, usdc, wire.ERC3009, nil, "a"},
		"a transfer":                    {transfer.Transfer, usdc, wire.ERC3009, nil, ""},
		"a transfer, v, r, s":           {transfer.Transfer, weth, wire.ERC3009, nil, ""},
		"an order, v, r, s":             {transfer.Bridge, weth, wire.ERC3009, nil, "SIGNING_NOT_SUPPORTED token"},
		"a transfer by permit2":         {transfer.Transfer, usdc, wire.Permit2, nil, "SIGNING_NOT_SUPPORTED settlement"},
		"native":                        {transfer.Bridge, registry.NativeAddress, wire.Permit2, nil, "SIGNING_NOT_SUPPORTED native"},
		"a token without":               {transfer.Transfer, oldToken, wire.ERC3009, nil, "SIGNING_NOT_SUPPORTED token"},
		"any token by permit2":          {transfer.Bridge, oldToken, wire.Permit2, nil, "b"},
		"a fee on transfers":            {transfer.Bridge, taxedToken, wire.Permit2, nil, "SIGNING_NOT_SUPPORTED token"},
		"no settlement that takes it":   {transfer.Bridge, usdc, wire.Permit2, reverse, "SIGNING_NOT_SUPPORTED settlement"},
		"59 seconds":                    {transfer.Bridge, usdc, wire.Permit2, in(59 * time.Second), "INVALID_DEADLINE "},
		"an hour":                       {transfer.Bridge, usdc, wire.Permit2, in(time.Hour), "b"},
		"an hour and a second":          {transfer.Bridge, usdc, wire.Permit2, in(time.Hour + time.Second), "INVALID_DEADLINE "},
		"an hour and a second, sent":    {transfer.Bridge, usdc, "", in(time.Hour + time.Second), "b"},
		"a transfer, hour and a second": {transfer.Transfer, usdc, wire.ERC3009, in(time.Hour + time.Second), "INVALID_DEADLINE "},
	} {
		request := newRequest(c.kind, c.token)
		request.Signing = c.scheme
		if c.change != nil {
			c.change(&request)
		}
		intent, err := transfer.New(transfer.NewID(quotedAt.Truncate(time.Second)), transfer.Caller{}, request, known)
		got := ""
		if refused := new(transfer.Rejection); err == nil {
			got = intent.Settlement.Deployment
			if intent.Signing.Scheme != c.scheme || !intent.Answers(request, here) {
				t.Errorf("%s: %+v", name, intent.Signing)
			}
			other := request
			other.Signing = map[wire.SigningScheme]wire.SigningScheme{"": wire.Permit2}[c.scheme]
			if intent.Answers(other, here) {
				t.Errorf("%s: a request that is signed otherwise is the same", name)
			}
		} else if ok := asRejection(err, &refused); ok {
			got = string(refused.Code) + " " + refused.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
		}
	}
}

func asRejection(err error, refused **transfer.Rejection) bool {
	r, ok := err.(*transfer.Rejection) //nolint:errorlint // New returns it as it is
	*refused = r
	return ok
}

func in(lifetime time.Duration) func(*wire.TransferRequest) {
	return func(r *wire.TransferRequest) { r.Deadline = quotedAt.Truncate(time.Second).Add(lifetime) }
}

// reverse lets the request begin on the chain whose settlements take no signatures.
func reverse(r *wire.TransferRequest) {
	r.Source, r.Destination = side(baseSepolia, alice, usdc, "7"), side(sepolia, bob, usdc, "6")
}

// Without a deadline a signed intent has ten minutes, or what its solvers need; a quote's own default holds for none.
func TestNew_SignedDeadline(t *testing.T) {
	t.Parallel()
	created := quotedAt.Truncate(time.Second)
	for minDeadline, want := range map[uint32]time.Duration{0: 10 * time.Minute, 539: 10 * time.Minute, 541: 601 * time.Second, 7200: 7260 * time.Second} {
		here, known := signable()
		here.Settlements[0].MinDeadline = minDeadline
		known = registry.NewSnapshot(1, []registry.Chain{here, mustChain(known, baseSepolia)}, slices.Concat(known.TokensOn(sepolia), known.TokensOn(baseSepolia)))
		request := newRequest(transfer.Bridge, usdc)
		request.Signing = wire.Permit2
		intent, err := transfer.New(transfer.NewID(created), transfer.Caller{}, request, known)
		if err != nil || !intent.Deadline.Equal(created.Add(want)) || !intent.Answers(request, here) {
			t.Errorf("%d s: %v, %+v", minDeadline, err, intent)
			continue
		}
		route, err := transfer.NewRoute(created, without(newRequest(transfer.Bridge, usdc), "destination"), known)
		if err != nil || !route.DefaultDeadline {
			t.Fatal(err)
		}
		later := created.Add(20 * time.Second)
		for _, settlement := range route.Settlements {
			request.Deadline = time.Time{}
			made, _, err := transfer.NewQuoted(transfer.NewID(later), transfer.Caller{}, request, known, settlement, transfer.Quote{ID: uuid.New()})
			if settlement.Deployment == "elsewhere" {
				continue
			}
			least := want
			if settlement.Deployment == "a" {
				least = 10 * time.Minute
			}
			claim := settlement.Expires.Sub(route.Deadline)
			if err != nil || !made.Deadline.Equal(later.Add(least)) || made.Settlement.Expires.Sub(made.Deadline) != claim {
				t.Errorf("%d s, a quote of %s: %v, %+v", minDeadline, settlement.Deployment, err, made)
			}
		}
		request.Deadline = created.Add(3 * time.Hour)
		_, _, err = transfer.NewQuoted(transfer.NewID(later), transfer.Caller{}, request, known, route.Settlements[0], transfer.Quote{ID: uuid.New()})
		if !strings.Contains(fmt.Sprint(err), "INVALID_DEADLINE") {
			t.Errorf("%d s, a quote that was asked for with three hours: %v", minDeadline, err)
		}
	}
}

func mustChain(known *registry.Snapshot, id caip.ChainID) registry.Chain {
	c, ok := known.Chain(id)
	if !ok {
		panic(id)
	}
	return c
}

// A signed intent has no transaction of its user's, is signed while it is created and until it must be sent, and is relayed beyond its quote's end.
func TestIntent_SignableRelayable(t *testing.T) {
	t.Parallel()
	_, known := signable()
	request := newRequest(transfer.Bridge, usdc)
	request.Signing = wire.Permit2
	created := quotedAt.Truncate(time.Second)
	intent, order, err := transfer.NewWithOrder(transfer.NewID(created), transfer.Caller{}, request, known)
	if err != nil {
		t.Fatal(err)
	}
	intent.Quote = transfer.Quote{ID: uuid.New(), ExpiresAt: created.Add(time.Minute)}
	for name, c := range map[string]struct {
		after               time.Duration
		change              func(*transfer.Intent, *transfer.Moment)
		signable, relayable bool
	}{
		"at once":                  {0, nil, true, true},
		"before the quote's end":   {59 * time.Second, nil, true, true},
		"after the quote's end":    {60 * time.Second, nil, false, true},
		"before the margin":        {594 * time.Second, nil, false, true},
		"five seconds before":      {595 * time.Second, nil, false, false},
		"submitted":                {0, func(i *transfer.Intent, _ *transfer.Moment) { i.Status = transfer.Submitted }, false, true},
		"cancelled":                {0, func(i *transfer.Intent, _ *transfer.Moment) { i.Status = transfer.Cancelled }, false, false},
		"confirmed":                {0, func(i *transfer.Intent, _ *transfer.Moment) { i.Status = transfer.Confirmed }, false, false},
		"its effect is in a block": {0, func(_ *transfer.Intent, m *transfer.Moment) { m.Done = true }, false, false},
		"its deployment is gone":   {0, func(_ *transfer.Intent, m *transfer.Moment) { m.Retired = true }, false, false},
		"screened":                 {0, func(_ *transfer.Intent, m *transfer.Moment) { m.Screened = true }, false, false},
	} {
		i := *intent
		m := i.MomentOf(transfer.History{}, known, created.Add(c.after))
		m.BlockTime = time.Second
		if c.change != nil {
			c.change(&i, &m)
		}
		tx, err := i.TxOf(order, m)
		relay, relayErr := i.RelayTx(order, m, make([]byte, 65))
		signature, signatureErr := i.SignatureAt(order, m)
		if err != nil || relayErr != nil || signatureErr != nil || tx != nil {
			t.Errorf("%s: %v, %v, %v, tx %v", name, err, relayErr, signatureErr, tx)
		}
		signing, relaying := i.Signable(m) == nil, i.Relayable(m) == nil
		if signing != c.signable || relaying != c.relayable || signing != (signature.TypedData != nil) || relaying != (relay != nil) {
			t.Errorf("%s: signable %t, relayable %t", name, signing, relaying)
		}
		if signature.Digest == [32]byte{} || signature.Allowance.Spender != transfer.Permit2Address || !signature.ExpiresAt.Equal(created.Add(time.Minute)) {
			t.Errorf("%s: %+v", name, signature)
		}
	}
}

// While the registry has no signing domain of the token, an authorization is neither signed nor relayed: no contract would take it as it is shown.
func TestIntent_WithoutDomain(t *testing.T) {
	t.Parallel()
	_, known := signable()
	created := quotedAt.Truncate(time.Second)
	for _, kind := range []transfer.Type{transfer.Transfer, transfer.Bridge} {
		request := newRequest(kind, usdc)
		request.Signing = wire.ERC3009
		intent, order, err := transfer.NewWithOrder(transfer.NewID(created), transfer.Caller{}, request, known)
		if err != nil {
			t.Fatal(err)
		}
		m := intent.MomentOf(transfer.History{}, known, created)
		for _, token := range []registry.Token{m.Token, {}} {
			has := token.ERC3009 != nil
			m.Token = token
			relay, relayErr := intent.RelayTx(order, m, make([]byte, 65))
			signature, err := intent.SignatureAt(order, m)
			if err != nil || relayErr != nil || (relay != nil) != has || (signature.TypedData != nil) != has || (signature.Digest != [32]byte{}) != has ||
				(intent.Signable(m) == nil) != has || (intent.Relayable(m) == nil) != has {
				t.Errorf("%s, a domain is %t: relay %v, %+v, %v, %v", kind, has, relay, signature, relayErr, err)
			}
		}
	}
}
