package transfer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

var (
	quotedAt = time.Date(2026, 11, 22, 1, 2, 3, 456e6, time.UTC)
	quoted   = transfer.Quote{ID: uuid.MustParse("0199a1b2-c3c4-7e5f-8a6b-0c1d2e3f4aff"), Provider: "solver", ExpiresAt: quotedAt.Add(time.Minute)}
)

// without is the request without one of its amounts.
func without(r wire.TransferRequest, side string) wire.TransferRequest {
	if side == "source" {
		r.Source.Amount = ""
	} else {
		r.Destination.Amount = ""
	}
	return r
}

// twoDeployments prefers b to a on both chains.
func twoDeployments() (here, there registry.Chain) {
	ours := []registry.Settlement{deployment("b", 3), deployment("elsewhere", 9), deployment("a", 1)}
	ours[0].SameChain, ours[2].SameChain = true, true
	here = registry.Chain{ID: sepolia, Environment: network.Test, Settlements: ours}
	there = registry.Chain{ID: baseSepolia, Environment: network.Test, Settlements: []registry.Settlement{deployment("a", 2), deployment("b", 4)}}
	return here, there
}

// A route has every deployment that executes it, and each is the settlement that New would choose were it the only one.
func TestNewRoute(t *testing.T) {
	t.Parallel()
	here, there := twoDeployments()
	for _, kind := range []transfer.Type{transfer.Swap, transfer.Bridge} {
		for _, missing := range []string{"source", "destination"} {
			request := newRequest(kind, usdc)
			want := &transfer.Route{Type: kind, DefaultDeadline: true, LeastValidity: 15 * time.Second}
			for _, n := range []int{0, 2} {
				alone := here
				alone.Settlements = here.Settlements[n : n+1]
				intent, err := transfer.New(transfer.NewID(quotedAt), transfer.Caller{}, request, registryOf(alone, there))
				if err != nil {
					t.Fatal(err)
				}
				want.Source, want.Destination, want.Deadline = intent.Source, intent.Destination, intent.Deadline
				want.LastUse = intent.Deadline.Add(-time.Minute)
				want.Settlements = append(want.Settlements, intent.Settlement)
			}
			if missing == "source" {
				want.Source.Amount = nil
			} else {
				want.Destination.Amount = nil
			}
			got, err := transfer.NewRoute(quotedAt, without(request, missing), registryOf(here, there))
			if diff := cmp.Diff(want, got, bigInts); diff != "" || err != nil {
				t.Errorf("%s, no %s amount: %v (-want +got):\n%s", kind, missing, err, diff)
			}
		}
	}
}

// A quote leaves its order the least lifetime whenever it is used, and can be used for two blocks of the source chain and 15 s after the
// providers were waited for.
func TestNewRoute_LeastDeadline(t *testing.T) {
	t.Parallel()
	here, there := twoDeployments()
	here.BlockTime, here.Confirmations = 12*time.Second, 5
	request := without(newRequest(transfer.Bridge, usdc), "destination")
	created := quotedAt.Truncate(time.Second)
	const least, validity, wait = 120 * time.Second, 39 * time.Second, 3 * time.Second
	for lifetime, taken := range map[time.Duration]bool{least + validity + wait: true, least + validity + wait - time.Second: false} {
		request.Deadline = created.Add(lifetime)
		route, err := transfer.NewRoute(created, request, registryOf(here, there))
		if taken && (err != nil || route.LeastValidity != validity || !route.LastUse.Equal(created.Add(validity+wait))) ||
			!taken && !strings.Contains(rejection(err), "must be 162 seconds to 7 days") {
			t.Errorf("%s: %+v, %v", lifetime, route, err)
		}
	}
}

// The solvers of a deployment may need more time than the chain itself: the least deadline and the default are theirs then, but for transfers.
func TestMinDeadline(t *testing.T) {
	t.Parallel()
	here, there := twoDeployments()
	here.Settlements[0].MinDeadline, here.Settlements[2].MinDeadline = 7200, 9000 // b, which is preferred, and a
	known, created := registryOf(here, there), quotedAt.Truncate(time.Second)
	for _, c := range []struct {
		kind                  transfer.Type
		quoting               bool
		least, byDefault, gap time.Duration
	}{
		{transfer.Bridge, false, 7200 * time.Second, 7260 * time.Second, 0},
		{transfer.Swap, false, 7200 * time.Second, 7260 * time.Second, 0},
		{transfer.Bridge, true, 9018 * time.Second, 9060 * time.Second, 9000 * time.Second},
		{transfer.Transfer, false, time.Minute, time.Hour, 0},
	} {
		deadline := func(lifetime time.Duration) (time.Time, error) {
			request := newRequest(c.kind, usdc)
			if lifetime > 0 {
				request.Deadline = created.Add(lifetime)
			}
			if c.quoting {
				route, err := transfer.NewRoute(created, without(request, "destination"), known)
				if err != nil {
					return time.Time{}, err
				}
				if gap := route.Deadline.Sub(route.LastUse); gap != c.gap {
					t.Errorf("%s: the order has %s when the quote is used last", c.kind, gap)
				}
				return route.Deadline, nil
			}
			intent, err := transfer.New(transfer.NewID(created), transfer.Caller{}, request, known)
			if err != nil {
				return time.Time{}, err
			}
			if !intent.Answers(request, here) {
				t.Errorf("%s after %s: the same request is another one", c.kind, lifetime)
			}
			return intent.Deadline, nil
		}
		if at, err := deadline(c.least); err != nil || !at.Equal(created.Add(c.least)) {
			t.Errorf("%s, the least: %s, %v", c.kind, at, err)
		}
		if at, err := deadline(c.least - time.Second); !strings.Contains(rejection(err), fmt.Sprintf("must be %d seconds to 7 days", c.least/time.Second)) {
			t.Errorf("%s, a second less: %s, %v", c.kind, at, err)
		}
		if at, err := deadline(0); err != nil || !at.Equal(created.Add(c.byDefault)) {
			t.Errorf("%s, the default: %s, %v", c.kind, at.Sub(created), err)
		}
	}
}

func TestNewRoute_Rejections(t *testing.T) {
	t.Parallel()
	unknown := caip.EIP155Chain(424242)
	for name, c := range map[string]struct {
		change func(*wire.TransferRequest)
		want   string
	}{
		"unknown chain":      {func(r *wire.TransferRequest) { r.Destination = side(unknown, bob, usdc, "") }, "UNSUPPORTED_CHAIN /destination/account"},
		"two chains a side":  {func(r *wire.TransferRequest) { r.Source.Token.Chain = amoy }, "CHAIN_MISMATCH /source/token"},
		"unknown token":      {func(r *wire.TransferRequest) { r.Destination.Token.Address = alice }, "UNKNOWN_TOKEN /destination/token"},
		"zero":               {func(r *wire.TransferRequest) { r.Source.Amount = "0" }, "INVALID_AMOUNT /source/amount"},
		"zero output":        {func(r *wire.TransferRequest) { r.Source.Amount, r.Destination.Amount = "", "0" }, "INVALID_AMOUNT /destination/amount"},
		"79 digits":          {func(r *wire.TransferRequest) { r.Source.Amount = strings.Repeat("9", 79) }, "INVALID_AMOUNT /source/amount"},
		"to the token":       {func(r *wire.TransferRequest) { r.Destination.Account.Address = usdc }, "INVALID_RECIPIENT /destination/account"},
		"to itself":          {func(r *wire.TransferRequest) { r.Destination = side(sepolia, alice, usdc, "") }, "SELF_TRANSFER /destination/account"},
		"a transfer":         {func(r *wire.TransferRequest) { r.Destination = side(sepolia, bob, usdc, "") }, "ROUTE_UNSUPPORTED "},
		"an output transfer": {func(r *wire.TransferRequest) { r.Source.Amount, r.Destination = "", side(sepolia, bob, "", "1") }, "ROUTE_UNSUPPORTED "},
		"too near":           {func(r *wire.TransferRequest) { r.Deadline = quotedAt.Add(59 * time.Second) }, "INVALID_DEADLINE /deadline"},
		"too far":            {func(r *wire.TransferRequest) { r.Deadline = quotedAt.Add(8 * 24 * time.Hour) }, "INVALID_DEADLINE /deadline"},
		"no settlement":      {func(r *wire.TransferRequest) { r.Destination = side(amoy, bob, usdc, "") }, "SETTLER_NOT_CONFIGURED "},
	} {
		request := without(newRequest(transfer.Bridge, usdc), "destination")
		c.change(&request)
		route, err := transfer.NewRoute(quotedAt, request, fixture())
		if got, _, _ := strings.Cut(rejection(err), ":"); got != c.want {
			t.Errorf("%s: %q, want %q: %+v", name, rejection(err), c.want, route)
		}
	}
}

// The contracts, the deadline and the amounts are the quote's, whatever the registry prefers now, but only while the registry has the contracts.
func TestNewQuoted(t *testing.T) {
	t.Parallel()
	here, elsewhere := twoDeployments()
	request := newRequest(transfer.Bridge, usdc)
	request.Reference = "inv-42"
	route, err := transfer.NewRoute(quotedAt, without(request, "destination"), registryOf(here, elsewhere))
	if err != nil {
		t.Fatal(err)
	}
	request.Deadline = route.Deadline
	caller := transfer.Caller{AccountID: uuid.New(), KeyID: uuid.New(), Environment: network.Test}
	here.Settlements = append([]registry.Settlement{deployment("new", 7)}, here.Settlements...)
	made := transfer.NewID(quotedAt.Add(30 * time.Second))
	got, order, err := transfer.NewQuoted(made, caller, request, registryOf(here, elsewhere), route.Settlements[1], quoted)
	if err != nil {
		t.Fatal(err)
	}
	want, err := transfer.New(made, caller, request, fixture()) // whose deployment is a too
	if err != nil {
		t.Fatal(err)
	}
	want.Quote = quoted
	if diff := cmp.Diff(want, got, bigInts); diff != "" || order.ID() != want.OrderID {
		t.Errorf("order %x (-want +got):\n%s", order.ID(), diff)
	}
	for name, change := range map[string]func(*registry.Settlement){
		"removed": func(s *registry.Settlement) { s.Deployment = "other" }, "another oracle": func(s *registry.Settlement) { s.Oracle = alice },
		"another input settler": func(s *registry.Settlement) { s.InputSettler = alice }, "another claim period": func(s *registry.Settlement) { s.ClaimPeriod++ },
	} {
		there := here
		there.Settlements = slices.Clone(here.Settlements)
		change(&there.Settlements[3])
		_, _, err := transfer.NewQuoted(made, caller, request, registryOf(there, elsewhere), route.Settlements[1], quoted)
		if got, _, _ := strings.Cut(rejection(err), ":"); (got == "SETTLER_NOT_CONFIGURED ") != (name != "another claim period") {
			t.Errorf("%s since: %v", name, err)
		}
	}
	request.Source.Token.Address = bob
	if _, _, err := transfer.NewQuoted(made, caller, request, registryOf(here, elsewhere), route.Settlements[1], quoted); !strings.HasPrefix(rejection(err), "UNKNOWN_TOKEN /source/token") {
		t.Errorf("a token that is not in the registry: %v", err)
	}
}

// A request may leave to its quote what the quote has.
func TestIntent_Answers_Quote(t *testing.T) {
	t.Parallel()
	body := newRequest(transfer.Bridge, usdc)
	body.Reference = "inv-42"
	plain, err := transfer.New(transfer.NewID(quotedAt), transfer.Caller{}, body, fixture())
	if err != nil {
		t.Fatal(err)
	}
	intent := *plain
	intent.Quote, intent.Deadline = quoted, quotedAt.Add(20*time.Minute).Truncate(time.Second)
	submitted := intent
	submitted.Signing.Submit = true
	body.QuoteID = quoted.ID.String()
	alone := wire.TransferRequest{QuoteID: body.QuoteID, Reference: "inv-42"}
	with := func(r wire.TransferRequest, change func(*wire.TransferRequest)) wire.TransferRequest {
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		of      *transfer.Intent
		request wire.TransferRequest
		want    bool
	}{
		"the id alone":                   {&intent, alone, true},
		"with the deadline":              {&intent, with(alone, func(r *wire.TransferRequest) { r.Deadline = intent.Deadline.Add(time.Millisecond) }), true},
		"with another deadline":          {&intent, with(alone, func(r *wire.TransferRequest) { r.Deadline = intent.Deadline.Add(time.Second) }), false},
		"another reference":              {&intent, with(alone, func(r *wire.TransferRequest) { r.Reference = "" }), false},
		"another id":                     {&intent, with(alone, func(r *wire.TransferRequest) { r.QuoteID = uuid.NewString() }), false},
		"the body":                       {&intent, body, true},
		"the body with the deadline":     {&intent, with(body, func(r *wire.TransferRequest) { r.Deadline = intent.Deadline }), true},
		"the body with another deadline": {&intent, with(body, func(r *wire.TransferRequest) { r.Deadline = plain.Deadline }), false},
		"another amount":                 {&intent, with(body, func(r *wire.TransferRequest) { r.Destination.Amount += "0" }), false},
		"no amount":                      {&intent, without(body, "destination"), false},
		"the body without the id":        {&intent, with(body, func(r *wire.TransferRequest) { r.QuoteID, r.Deadline = "", intent.Deadline }), false},
		"submitted":                      {&submitted, with(alone, func(r *wire.TransferRequest) { r.Submit = true }), true},
		"submitted, without submit":      {&submitted, alone, false},
		"a plain intent":                 {plain, body, false},
		"a plain intent, the zero id":    {plain, with(alone, func(r *wire.TransferRequest) { r.QuoteID = uuid.Nil.String() }), false},
	} {
		if got := c.of.Answers(c.request, registry.Chain{}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A quoted order is opened before its quote ends or, where that is earlier, in time before its deadline.
func TestIntent_SendBy_Quote(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Bridge)
	last := intent.SendBy(12 * time.Second)
	for _, c := range []struct{ end, want time.Time }{
		{time.Time{}, last},
		{last.Add(-time.Second), last.Add(-time.Second)},
		{last.Add(time.Second), last},
		{intent.Deadline, last},
	} {
		intent.Quote.ExpiresAt = c.end
		if got := intent.SendBy(12 * time.Second); !got.Equal(c.want) {
			t.Errorf("a quote until %s: %s, want %s", c.end, got, c.want)
		}
		for at, want := range map[time.Time]bool{c.want.Add(-time.Nanosecond): true, c.want: false} {
			if tx, err := intent.Tx(transfer.Moment{Now: at, BlockTime: 12 * time.Second}); err != nil || (tx != nil) != want {
				t.Errorf("a quote until %s, at %s: %+v, %v", c.end, at, tx, err)
			}
		}
	}
}
