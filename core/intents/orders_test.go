package intents_test

import (
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

const (
	alice        = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	usdc         = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	inputSettler = "0x00000000000000000000000000000000000000aA"
)

var (
	sepolia = caip.EIP155Chain(11155111)
	settler = common.HexToAddress(inputSettler)
	token   = common.HexToAddress(usdc)
)

// swap is an intent to swap 5 units of USDC on Sepolia; its order expires at a time.
func swap(expires time.Time) *transfer.Intent {
	leg := transfer.Leg{
		Account: caip.AccountID{Chain: sepolia, Address: alice}, Token: caip.AccountID{Chain: sepolia, Address: usdc}, Amount: big.NewInt(5),
	}
	intent := &transfer.Intent{
		ID: uuid.Must(uuid.NewV7()), Type: transfer.Swap, Status: transfer.Created, Source: leg, Destination: leg, Deadline: expires.Add(-time.Hour),
		Settlement: transfer.Settlement{
			Scheme: registry.StandardOrder, InputSettler: inputSettler, OutputSettler: inputSettler, InputOracle: inputSettler, OutputOracle: inputSettler,
			Expires: expires,
		},
	}
	order, err := intent.Order()
	if err != nil {
		panic(err)
	}
	intent.OrderID = order.ID()
	return intent
}

func connect(t *testing.T, nodes ...*rpctest.Node) *rpc.Client {
	t.Helper()
	var endpoints []rpc.Endpoint
	for _, n := range nodes {
		endpoints = append(endpoints, rpc.Endpoint{URL: telemetry.Secret(n.URL()), RequestsPerSecond: 1000})
	}
	client, err := rpc.NewClient(rpc.Providers{sepolia: endpoints}, rpc.Options{Transport: rpctest.Transport(nodes...)})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sold is Sepolia, where Alice has 9 units and the settler draws 5 of them if it may: by an allowance, or by an approval before.
func sold(allowance uint64) *rpctest.Chain {
	c := rpctest.NewChain(11155111)
	c.SetSettler(settler)
	c.SetFunction(token, rpctest.BalanceOf, func(rpctest.Call) ([]byte, error) { return rpctest.Word(9), nil })
	c.SetFunction(token, rpctest.Allowance, func(rpctest.Call) ([]byte, error) { return rpctest.Word(allowance), nil })
	c.SetFunction(settler, rpctest.Open, func(call rpctest.Call) ([]byte, error) {
		if n := len(call.Before); n > 0 {
			allowance = new(big.Int).SetBytes(call.Before[n-1].Data[36:]).Uint64()
		}
		if allowance < 5 {
			return nil, rpctest.Revert{0xfb, 0x8f, 0x41, 0xb2}
		}
		return nil, nil
	})
	c.SetGas(func(call rpctest.Call) (uint64, error) {
		switch {
		case call.To == token:
			return 46_000, nil
		case allowance < 5 && len(call.Before) == 0:
			return 0, rpctest.Revert{0xfb, 0x8f, 0x41, 0xb2}
		}
		return 90_000, nil
	})
	return c
}

func TestPreflight_Steps(t *testing.T) {
	t.Parallel()
	deadline, refused := time.Now().Add(time.Hour), rpctest.Revert{0x4a, 0x31, 0x3c, 0x2d}
	missing := func(code int) func(*rpctest.Faults) {
		return func(f *rpctest.Faults) {
			f.Errors = map[string]rpctest.Error{"eth_simulateV1": {Code: code, Message: "the method eth_simulateV1 does not exist/is not available"}}
		}
	}
	// refuses makes the n-th of the simulated calls of a function revert.
	refuses := func(to common.Address, f rpctest.Selector, n int) func(*rpctest.Chain) {
		return func(c *rpctest.Chain) {
			c.SetFunction(to, f, func(call rpctest.Call) ([]byte, error) {
				if len(call.Before) == n {
					return nil, refused
				}
				return nil, nil
			})
		}
	}
	tether := func(c *rpctest.Chain) { // refuses to change an allowance
		c.SetFunction(token, rpctest.Approve, func(call rpctest.Call) ([]byte, error) {
			if len(call.Before) == 0 && slices.Max(call.Data[36:]) > 0 {
				return nil, refused
			}
			return nil, nil
		})
	}
	const (
		alone       = "The transaction succeeds at the newest block."
		both        = "The approval and then the transaction succeed at the newest block."
		all         = "The reset of the allowance, the approval and then the transaction succeed at the newest block."
		refusal     = "The approval reverts, because the order's deadline has passed."
		resetFirst  = " Some tokens refuse to change an allowance that is not 0: send the reset in tx.allowances, then check again."
		approveLess = " The allowance is in place: send the transaction without the approval."
		unknown     = "The node cannot simulate the transaction after its approval, so neither whether it succeeds nor its gas is known before the approval is in a block."
	)
	for name, c := range map[string]struct {
		allowance uint64
		stepsOf   transfer.StepsOf
		change    func(*rpctest.Chain)
		fault     func(*rpctest.Faults)
		gas       string // none where it fails
		result    string
		detail    string
	}{
		"allowed":                     {5, transfer.AllSteps, nil, nil, "136000", "ok", both},
		"allowed, needed":             {5, transfer.NeededSteps, nil, nil, "90000", "ok", alone},
		"not allowed":                 {0, transfer.AllSteps, nil, nil, "136000", "ok", both},
		"not allowed, needed":         {0, transfer.NeededSteps, nil, nil, "136000", "ok", both},
		"too little":                  {4, transfer.AllSteps, nil, nil, "136000", "ok", both},
		"too little, needed":          {4, transfer.NeededSteps, nil, nil, "182000", "ok", all},
		"tether":                      {0, transfer.AllSteps, nil, nil, "136000", "ok", both},
		"tether, too little":          {4, transfer.AllSteps, tether, nil, "", "not ok", refusal + resetFirst},
		"tether, too little, needed":  {4, transfer.NeededSteps, tether, nil, "182000", "ok", all},
		"tether, allowed":             {5, transfer.AllSteps, tether, nil, "", "not ok", refusal + approveLess},
		"tether, allowed, needed":     {5, transfer.NeededSteps, tether, nil, "90000", "ok", alone},
		"the approval reverts":        {0, transfer.AllSteps, refuses(token, rpctest.Approve, 0), nil, "", "not ok", refusal},
		"the reset reverts":           {4, transfer.NeededSteps, refuses(token, rpctest.Approve, 0), nil, "", "not ok", "The reset of the allowance reverts, because the order's deadline has passed."},
		"the order is refused":        {0, transfer.AllSteps, refuses(settler, rpctest.Open, 1), nil, "", "not ok", "The transaction reverts, because the order's deadline has passed."},
		"the order is refused, alone": {5, transfer.NeededSteps, refuses(settler, rpctest.Open, 0), nil, "", "not ok", "The transaction reverts, because the order's deadline has passed."},
		"a token that takes a fee": {5, transfer.NeededSteps, func(c *rpctest.Chain) {
			short := append(rpctest.Revert{0x2c, 0x4d, 0x32, 0x4d}, append(rpctest.Word(4), rpctest.Word(5)...)...) // InvalidBalanceDelta
			c.SetFunction(settler, rpctest.Open, func(rpctest.Call) ([]byte, error) { return nil, short })
		}, nil, "", "not ok", "The transaction reverts, because the token delivered another amount than the order's, as one with a fee on transfers does."},
		"no method":                        {0, transfer.AllSteps, nil, missing(-32601), "", "unknown", unknown},
		"no method, in EIP-1474":           {0, transfer.AllSteps, nil, missing(-32004), "", "unknown", unknown},
		"no method, of a proxy":            {4, transfer.NeededSteps, nil, missing(-32000), "", "unknown", unknown},
		"no method, the approval reverts":  {0, transfer.AllSteps, refuses(token, rpctest.Approve, 0), missing(-32601), "", "not ok", refusal},
		"no method, allowed":               {5, transfer.AllSteps, nil, missing(-32601), "136000", "ok", both},
		"no method, allowed, needed":       {5, transfer.NeededSteps, nil, missing(-32601), "90000", "ok", alone},
		"no method, tether, too little":    {4, transfer.AllSteps, tether, missing(-32601), "", "not ok", refusal + resetFirst},
		"no method, the order is refused":  {5, transfer.AllSteps, refuses(settler, rpctest.Open, 0), missing(-32601), "", "not ok", "The transaction reverts, because the order's deadline has passed."},
		"no method, nobody tells the rest": {0, transfer.AllSteps, refuses(settler, rpctest.Open, 0), missing(-32601), "", "unknown", unknown},
	} {
		ledger := sold(c.allowance)
		if c.change != nil {
			c.change(ledger)
		}
		node := rpctest.NewNode(ledger)
		if c.fault != nil {
			node.Set(c.fault)
		}
		intent := swap(deadline.Add(time.Hour))
		tx, err := intent.Tx(transfer.Moment{Now: time.Now(), BlockTime: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		checks, gas, err := intents.Simulate(t.Context(), connect(t, node), intent, tx, c.stepsOf, time.Now())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := transfer.Check{Name: transfer.CheckSimulation, OK: c.result != "not ok", Unknown: c.result == "unknown", Detail: c.detail}
		if diff := cmp.Diff(want, checks[len(checks)-1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if allowance := checks[1]; !allowance.OK || allowance.Needed != (c.allowance < 5) {
			t.Errorf("%s: %+v", name, allowance)
		}
		if got := text(gas); got != c.gas {
			t.Errorf("%s: the gas is %q, want %q", name, got, c.gas)
		}
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A node that simulates nothing for now is no reason to leave the simulation out while another can.
func TestPreflight_NextNode(t *testing.T) {
	t.Parallel()
	busy, able := rpctest.NewNode(sold(0)), rpctest.NewNode(sold(0))
	busy.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_simulateV1": {Code: -32005, Message: "rate limit"}}
	})
	intent := swap(time.Now().Add(2 * time.Hour))
	tx, err := intent.Tx(transfer.Moment{Now: time.Now(), BlockTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	checks, _, err := intents.Simulate(t.Context(), connect(t, busy, able), intent, tx, transfer.AllSteps, time.Now())
	if err != nil || !checks[len(checks)-1].OK || busy.Calls()["eth_simulateV1"] != 1 {
		t.Errorf("%+v, %v", checks, err)
	}
}

func TestOrderStatus(t *testing.T) {
	t.Parallel()
	head := rpctest.Start
	for name, c := range map[string]struct {
		expires time.Time
		status  transfer.OrderStatus
		settler bool
		want    error
		silent  bool
	}{
		"open":                {head.Add(-time.Second), transfer.OrderDeposited, true, nil, false},
		"never opened":        {head.Add(-time.Second), transfer.OrderNone, true, transfer.ErrNotRefundable, false},
		"claimed":             {head.Add(-time.Second), transfer.OrderClaimed, true, transfer.ErrNotRefundable, false},
		"refunded":            {head.Add(-time.Second), transfer.OrderRefunded, true, transfer.ErrNotRefundable, false},
		"the node lags":       {head, transfer.OrderDeposited, true, nil, true},
		"there is no settler": {head.Add(-time.Second), transfer.OrderDeposited, false, nil, true},
	} {
		ledger, intent := rpctest.NewChain(11155111), swap(c.expires)
		if c.settler {
			ledger.SetSettler(settler)
			ledger.SetOrderStatus(intent, c.status)
		}
		tx, err := intents.Refund(t.Context(), connect(t, rpctest.NewNode(ledger)), intent)
		if _, silent := errors.AsType[*rpc.NoAnswerError](err); silent != c.silent || !silent && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if handedOut := tx != nil; handedOut != (c.want == nil && !c.silent) {
			t.Errorf("%s: %+v", name, tx)
		}
	}
}
