package transfer_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// newRequest asks for an operation from sepolia. A bridge leads to baseSepolia.
func newRequest(kind transfer.Type, input string) wire.TransferRequest {
	r := wire.TransferRequest{Source: side(sepolia, alice, input, "2"), Destination: side(sepolia, bob, input, "2")}
	switch kind {
	case transfer.Swap:
		r.Destination = side(sepolia, bob, weth, "1")
	case transfer.Bridge:
		r.Destination = side(baseSepolia, bob, usdc, "1")
	case transfer.Transfer:
	}
	return r
}

func TestNew_Settlement(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	deadline := created.Add(time.Hour)
	type list = []registry.Settlement
	with := func(name string, number int64, change func(*registry.Settlement)) registry.Settlement {
		s := deployment(name, number)
		change(&s)
		return s
	}
	native := func(s *registry.Settlement) { s.Native = true }
	sameChain := func(s *registry.Settlement) { s.SameChain = true }
	both := func(s *registry.Settlement) { s.Native, s.SameChain = true, true }
	origin := func(s *registry.Settlement) { s.OutputOracle = registry.OriginOracle }
	older := func(s *registry.Settlement) { s.Scheme = "oif-v0/StandardOrder" }
	// bridge is the settlement from one deployment to another by their numbers.
	bridge := func(name string, here, there int64) transfer.Settlement {
		return transfer.Settlement{
			Scheme: registry.StandardOrder, Deployment: name, InputSettler: address(10 * here), OutputSettler: address(10*there + 1),
			InputOracle: address(10*here + 2), OutputOracle: address(10*there + 2), Expires: deadline.Add(time.Hour),
		}
	}
	swap := func(name string, here int64) transfer.Settlement {
		s := bridge(name, here, here)
		s.InputOracle, s.OutputOracle = s.OutputSettler, s.OutputSettler
		return s
	}
	from := func(s transfer.Settlement, change func(*transfer.Settlement)) transfer.Settlement {
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		kind        transfer.Type
		native      bool
		here, there list
		want        transfer.Settlement
	}{
		"transfer":                          {kind: transfer.Transfer, want: transfer.Settlement{Scheme: registry.StandardOrder, Expires: deadline}},
		"transfer, native":                  {kind: transfer.Transfer, native: true, here: list{deployment("a", 1)}, want: transfer.Settlement{Scheme: registry.StandardOrder, Expires: deadline}},
		"bridge":                            {kind: transfer.Bridge, here: list{deployment("a", 1)}, there: list{deployment("a", 2)}, want: bridge("a", 1, 2)},
		"the source's preference":           {kind: transfer.Bridge, here: list{deployment("b", 1), deployment("a", 2)}, there: list{deployment("a", 3), deployment("b", 4)}, want: bridge("b", 1, 4)},
		"the first in common":               {kind: transfer.Bridge, here: list{deployment("c", 1), deployment("a", 2), deployment("b", 3)}, there: list{deployment("d", 4), deployment("b", 5), deployment("a", 6)}, want: bridge("a", 2, 6)},
		"a deployment of another scheme":    {kind: transfer.Bridge, here: list{with("a", 1, older), deployment("b", 2)}, there: list{deployment("a", 3), deployment("b", 4)}, want: bridge("b", 2, 4)},
		"bridge of native":                  {kind: transfer.Bridge, native: true, here: list{with("a", 1, native)}, there: list{deployment("a", 2)}, want: bridge("a", 1, 2)},
		"bridge of native, the next":        {kind: transfer.Bridge, native: true, here: list{deployment("a", 1), with("c", 2, native), with("b", 3, native)}, there: list{deployment("a", 4), deployment("b", 5)}, want: bridge("b", 3, 5)},
		"bridge without same chain":         {kind: transfer.Bridge, here: list{deployment("a", 1)}, there: list{with("a", 2, sameChain)}, want: bridge("a", 1, 2)},
		"the origin's oracle":               {kind: transfer.Bridge, here: list{with("a", 1, origin)}, there: list{deployment("a", 2)}, want: from(bridge("a", 1, 2), func(s *transfer.Settlement) { s.OutputOracle = address(12) })},
		"the destination's word is not its": {kind: transfer.Bridge, here: list{deployment("a", 1)}, there: list{with("a", 2, origin)}, want: bridge("a", 1, 2)},
		"another claim period": {
			kind: transfer.Bridge, here: list{with("a", 1, func(s *registry.Settlement) { s.ClaimPeriod = 172_800 })}, there: list{deployment("a", 2)},
			want: from(bridge("a", 1, 2), func(s *transfer.Settlement) { s.Expires = deadline.Add(48 * time.Hour) }),
		},
		"the longest claim period": {
			kind: transfer.Bridge, there: list{deployment("a", 2)},
			here: list{with("a", 1, func(s *registry.Settlement) { s.ClaimPeriod = uint32(math.MaxUint32 - deadline.Unix()) })},
			want: from(bridge("a", 1, 2), func(s *transfer.Settlement) { s.Expires = time.Unix(math.MaxUint32, 0) }),
		},
		"swap":                         {kind: transfer.Swap, here: list{with("a", 1, sameChain)}, want: swap("a", 1)},
		"swap, the first of its chain": {kind: transfer.Swap, here: list{deployment("a", 1), with("b", 2, sameChain), with("c", 3, sameChain)}, want: swap("b", 2)},
		"swap names no oracle":         {kind: transfer.Swap, here: list{with("a", 1, func(s *registry.Settlement) { s.SameChain, s.OutputOracle = true, registry.OriginOracle })}, want: swap("a", 1)},
		"swap of native, the next":     {kind: transfer.Swap, native: true, here: list{with("a", 1, native), with("b", 2, sameChain), with("c", 3, both)}, want: swap("c", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := newRequest(c.kind, map[bool]string{true: registry.NativeAddress, false: usdc}[c.native])
			known := registryOf(
				registry.Chain{ID: sepolia, Environment: network.Test, Settlements: c.here},
				registry.Chain{ID: baseSepolia, Environment: network.Test, Settlements: c.there},
			)
			intent, err := transfer.New(transfer.NewID(created), transfer.Caller{}, request, known)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, intent.Settlement); diff != "" {
				t.Errorf("settlement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNew_NoSettlement(t *testing.T) {
	t.Parallel()
	type list = []registry.Settlement
	with := func(s registry.Settlement, change func(*registry.Settlement)) registry.Settlement {
		change(&s)
		return s
	}
	native := func(s *registry.Settlement) { s.Native = true }
	sameChain := func(s *registry.Settlement) { s.SameChain = true }
	for name, c := range map[string]struct {
		kind        transfer.Type
		input       string
		here, there list
		want        string
	}{
		"swap, none":                {transfer.Swap, usdc, nil, nil, "SETTLER_NOT_CONFIGURED : No settlement is configured on eip155:11155111, so no swap can be executed there."},
		"swap, for bridges only":    {transfer.Swap, usdc, list{deployment("a", 1), deployment("b", 2)}, nil, "SETTLER_NOT_CONFIGURED : No deployment on eip155:11155111 fills orders on its own chain, so no swap can be executed there."},
		"bridge, none here":         {transfer.Bridge, usdc, nil, list{deployment("a", 1)}, "SETTLER_NOT_CONFIGURED : No settlement is configured on eip155:11155111, so no bridge can be executed there."},
		"bridge, none there":        {transfer.Bridge, usdc, list{deployment("a", 1)}, nil, "SETTLER_NOT_CONFIGURED : No settlement is configured on eip155:84532, so no bridge can be executed there."},
		"bridge, none in common":    {transfer.Bridge, usdc, list{deployment("a", 1)}, list{deployment("b", 2)}, "SETTLER_NOT_CONFIGURED : eip155:11155111 and eip155:84532 have no deployment in common, so no bridge can be executed between them."},
		"native, none in common":    {transfer.Bridge, registry.NativeAddress, list{with(deployment("a", 1), native)}, list{deployment("b", 2)}, "SETTLER_NOT_CONFIGURED : eip155:11155111 and eip155:84532 have no deployment in common, so no bridge can be executed between them."},
		"bridge, native is refused": {transfer.Bridge, registry.NativeAddress, list{deployment("a", 1), with(deployment("b", 2), native)}, list{with(deployment("a", 3), native)}, "NATIVE_NOT_SUPPORTED /source/token: No deployment that executes this bridge takes the native token of eip155:11155111 as input; use its wrapped token."},
		"swap, native is refused":   {transfer.Swap, registry.NativeAddress, list{with(deployment("a", 1), sameChain), with(deployment("b", 2), native)}, nil, "NATIVE_NOT_SUPPORTED /source/token: No deployment that executes this swap takes the native token of eip155:11155111 as input; use its wrapped token."},
		"a claim period that does not fit": {
			transfer.Bridge, usdc,
			list{with(deployment("a", 1), func(s *registry.Settlement) { s.ClaimPeriod = math.MaxUint32 })},
			list{deployment("a", 2)},
			"INVALID_DEADLINE /deadline: The deadline and the claim period of 4294967295 seconds of eip155:11155111 do not fit the 32 bits of an order.",
		},
	} {
		known := registryOf(
			registry.Chain{ID: sepolia, Environment: network.Test, Settlements: c.here},
			registry.Chain{ID: baseSepolia, Environment: network.Test, Settlements: c.there},
		)
		intent, err := transfer.New(id, transfer.Caller{}, newRequest(c.kind, c.input), known)
		if got := rejection(err); got != c.want {
			t.Errorf("%s: %q, %+v", name, got, intent)
		}
	}
}

// rejection is the code, path and message of a rejection, or another error's text.
func rejection(err error) string {
	var r *transfer.Rejection
	switch {
	case errors.As(err, &r):
		return string(r.Code) + " " + r.Path + ": " + r.Message
	case err != nil:
		return err.Error()
	default:
		return ""
	}
}

// An order must be open, at the depth of its source chain, a minute before its deadline.
func TestNew_LeastLifetime(t *testing.T) {
	t.Parallel()
	created, other := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), time.Date(2026, 11, 22, 1, 2, 3, 456e6, time.UTC)
	for name, c := range map[string]struct {
		kind          transfer.Type
		confirmations uint64
		blockTime     time.Duration
		least         time.Duration
		text          string
	}{
		"transfer":          {transfer.Transfer, 16, 12 * time.Second, time.Minute, "INVALID_DEADLINE /deadline: The deadline of a transfer from eip155:11155111 must be 60 seconds to 7 days from now."},
		"bridge, Ethereum":  {transfer.Bridge, 16, 12 * time.Second, 252 * time.Second, "INVALID_DEADLINE /deadline: The deadline of a bridge from eip155:11155111 must be 252 seconds to 7 days from now."},
		"swap, Ethereum":    {transfer.Swap, 16, 12 * time.Second, 252 * time.Second, "INVALID_DEADLINE /deadline: The deadline of a swap from eip155:11155111 must be 252 seconds to 7 days from now."},
		"fast blocks":       {transfer.Bridge, 240, 250 * time.Millisecond, 2 * time.Minute, "INVALID_DEADLINE /deadline: The deadline of a bridge from eip155:11155111 must be 120 seconds to 7 days from now."},
		"part of a second":  {transfer.Bridge, 7, 150 * time.Millisecond, 62 * time.Second, "INVALID_DEADLINE /deadline: The deadline of a bridge from eip155:11155111 must be 62 seconds to 7 days from now."},
		"more than an hour": {transfer.Swap, 512, 12 * time.Second, 6204 * time.Second, "INVALID_DEADLINE /deadline: The deadline of a swap from eip155:11155111 must be 6204 seconds to 7 days from now."},
	} {
		here := deployment("a", 1)
		here.SameChain = true
		known := registryOf(
			registry.Chain{ID: sepolia, Environment: network.Test, Settlements: []registry.Settlement{here}, Confirmations: c.confirmations, BlockTime: c.blockTime},
			registry.Chain{ID: baseSepolia, Environment: network.Test, Settlements: []registry.Settlement{deployment("a", 2)}, Confirmations: 10_000, BlockTime: time.Minute},
		)
		for lifetime, want := range map[time.Duration]string{c.least: "", c.least - time.Nanosecond: c.text, c.least - time.Second: c.text, 0: c.text} {
			request := newRequest(c.kind, usdc)
			request.Deadline = created.Add(lifetime)
			_, err := transfer.New(transfer.NewID(created), transfer.Caller{}, request, known)
			if got := rejection(err); got != want {
				t.Errorf("%s, %s: %q", name, lifetime, got)
			}
		}
		// Without a deadline the request gets an hour, or what its chain needs.
		for _, at := range []time.Time{created, other} {
			request := newRequest(c.kind, usdc)
			source, _ := known.Chain(sepolia)
			slower := source
			slower.Confirmations *= 2
			intent, err := transfer.New(transfer.NewID(at), transfer.Caller{}, request, known)
			if err != nil || intent.Deadline.Before(at.Add(c.least)) || !intent.Deadline.Equal(at.Add(max(time.Hour, c.least+time.Second)).Truncate(time.Second)) {
				t.Errorf("%s, without a deadline: %+v, %v", name, intent, err)
				continue
			}
			for _, now := range []registry.Chain{source, slower} { // an import may have changed it since
				if got, want := intent.Answers(request, now), now.Confirmations == source.Confirmations || c.least < time.Hour; got != want {
					t.Errorf("%s: answers its request, with %d confirmations now: %t", name, now.Confirmations, got)
				}
			}
			request.Deadline = intent.Deadline.Add(time.Second)
			if intent.Answers(request, source) {
				t.Errorf("%s: answers a request with another deadline", name)
			}
		}
	}
}
