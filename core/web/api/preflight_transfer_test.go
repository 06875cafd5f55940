package api_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/telemetry"
)

var (
	sepoliaSettler = common.HexToAddress("0x010011155111")
	usdc           = common.HexToAddress("0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238")
	openSelector   = rpctest.NewSelector("open((address,uint256,uint256,uint32,uint32,address,uint256[2][],(bytes32,bytes32,uint256,bytes32,uint256,bytes32,bytes,bytes)[]))")
	sendSelector   = rpctest.NewSelector("transfer(address,uint256)")
)

func returning(n uint64) rpctest.Function {
	return func(rpctest.Call) ([]byte, error) { return rpctest.Word(n), nil }
}

func reverting(data ...byte) rpctest.Function {
	return func(rpctest.Call) ([]byte, error) { return nil, rpctest.Revert(data) }
}

// after is a function that reverts unless so many calls were simulated before it.
func after(calls int) rpctest.Function {
	return func(c rpctest.Call) ([]byte, error) {
		if len(c.Before) != calls {
			return nil, rpctest.Revert(nil)
		}
		return nil, nil
	}
}

// payable is Sepolia, where Alice has 9 units of USDC and of ether, and the settler may draw 5.
func payable() *rpctest.Chain {
	chain := rpctest.NewChain(11155111)
	chain.SetCode(sepoliaSettler, []byte{1})
	chain.SetBalance(common.HexToAddress(webtest.Alice), big.NewInt(9))
	chain.SetFunction(sepoliaSettler, rpctest.OrderStatus, returning(0))
	chain.SetFunction(usdc, rpctest.BalanceOf, returning(9))
	chain.SetFunction(usdc, rpctest.Allowance, returning(5))
	chain.SetFunction(usdc, sendSelector, returning(1))
	chain.SetFunction(usdc, rpctest.Approve, returning(1))
	chain.SetGas(func(rpctest.Call) (uint64, error) { return 123_456, nil })
	return chain
}

const (
	balanceOK    = `{"name":"balance","ok":true,"detail":"The account has 9 units of the token, and the transaction needs 5."}`
	allowanceOK  = `{"name":"allowance","ok":true,"detail":"The settler may draw 5 units of the token, and the transaction needs 5."}`
	noAllowance  = `{"name":"allowance","ok":true,"detail":"An allowance is not needed."}`
	deadlineOK   = `{"name":"deadline","ok":true,"detail":"<ahead>"}`
	settlerOK    = `{"name":"settler","ok":true,"detail":"The input settler has not opened the order yet."}`
	noSettler    = `{"name":"settler","ok":true,"detail":"A settler is not needed."}`
	simulationOK = `{"name":"simulation","ok":true,"detail":"The transaction succeeds at the newest block."}`
	approvedOK   = `{"name":"simulation","ok":true,"detail":"The approval and then the transaction succeed at the newest block."}`
)

// preflight is a preflight's answer with how far the deadline is ahead written as <ahead>.
func (s *service) preflight(t *testing.T, location string, account ...string) webtest.Answer {
	t.Helper()
	got := s.Call(t, "GET", location+"/preflight", "", account...)
	body, _ := got.Body.(map[string]any)
	checks, _ := body["checks"].([]any)
	if len(checks) > 2 {
		check := checks[2].(map[string]any)
		if d := check["detail"].(string); len(d) > 22 && d[:16] == "The deadline is " && d[len(d)-7:] == " ahead." {
			check["detail"] = "<ahead>"
		}
	}
	return got
}

func TestPreflightTransfer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request string
		change  func(*rpctest.Chain)
		want    string
	}{
		"a swap": {
			webtest.SwapBody, nil,
			`{"ok":true,"gas":"246912","checks":[` + balanceOK + `,` + allowanceOK + `,` + deadlineOK + `,` + settlerOK + `,` + approvedOK + `]}`,
		},
		"a transfer": {
			webtest.TransferBody, nil,
			`{"ok":true,"gas":"123456","checks":[` + balanceOK + `,` + noAllowance + `,` + deadlineOK + `,` + noSettler + `,` + simulationOK + `]}`,
		},
		"a transfer of the native asset": {
			webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnSepolia, "", "", ""), nil,
			`{"ok":true,"gas":"123456","checks":[{"name":"balance","ok":true,"detail":"The account has 9 wei, and the transaction needs 5 and its gas."},` +
				noAllowance + `,` + deadlineOK + `,` + noSettler + `,` + simulationOK + `]}`,
		},
		"a native transfer beyond the balance": {
			webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "10", webtest.BobOnSepolia, "", "", ""), func(chain *rpctest.Chain) {
				chain.SetGas(func(rpctest.Call) (uint64, error) {
					return 0, rpctest.Error{Code: -32000, Message: "insufficient funds for transfer"}
				})
			},
			`{"ok":false,"gas":null,"checks":[{"name":"balance","ok":false,"detail":"The account has 9 wei, and the transaction needs 10 and its gas."},` +
				noAllowance + `,` + deadlineOK + `,` + noSettler + `,
				{"name":"simulation","ok":false,"detail":"The node refuses to simulate the transaction: \"insufficient funds for transfer\"."}]}`,
		},
		"no allowance": {
			webtest.SwapBody, func(chain *rpctest.Chain) {
				chain.SetFunction(usdc, rpctest.Allowance, returning(0))
				chain.SetFunction(sepoliaSettler, openSelector, after(1))
			},
			`{"ok":true,"gas":"246912","checks":[` + balanceOK + `,{"name":"allowance","ok":true,"needed":true,
				"detail":"The settler may draw 0 units of the token, and the transaction needs 5; the approval that is sent first grants it."},` +
				deadlineOK + `,` + settlerOK + `,` + approvedOK + `]}`,
		},
		"an allowance that must be reset": {
			webtest.SwapBody, func(chain *rpctest.Chain) {
				chain.SetFunction(usdc, rpctest.Allowance, returning(4))
				chain.SetFunction(usdc, rpctest.Approve, reverting())
			},
			`{"ok":false,"gas":null,"checks":[` + balanceOK + `,{"name":"allowance","ok":true,"needed":true,
				"detail":"The settler may draw 4 units of the token, and the transaction needs 5; the approval that is sent first grants it."},` +
				deadlineOK + `,` + settlerOK + `,{"name":"simulation","ok":false,"detail":"The approval reverts without a reason. ` +
				`Some tokens refuse to change an allowance that is not 0: send the reset in tx.allowances, then check again."}]}`,
		},
		"opened before": {
			webtest.SwapBody, func(chain *rpctest.Chain) {
				chain.SetFunction(sepoliaSettler, openSelector, reverting(crypto.Keccak256([]byte("InvalidOrderStatus()"))[:4]...))
				chain.SetFunction(sepoliaSettler, rpctest.OrderStatus, returning(1))
			},
			`{"ok":false,"gas":null,"checks":[` + balanceOK + `,` + allowanceOK + `,` + deadlineOK + `,
				{"name":"settler","ok":false,"detail":"The order is open already, which anybody can do for the sender; nothing needs to be sent."},
				{"name":"simulation","ok":false,"detail":"The transaction reverts, because somebody has opened the order before, or it has ended."}]}`,
		},
		"nothing is there": {
			webtest.SwapBody, func(chain *rpctest.Chain) {
				chain.SetCode(sepoliaSettler, nil)
				chain.SetFunction(sepoliaSettler, rpctest.OrderStatus, nil)
				chain.SetFunction(usdc, rpctest.BalanceOf, nil)
				chain.SetFunction(usdc, rpctest.Allowance, reverting(1))
			},
			`{"ok":false,"gas":"246912","checks":[{"name":"balance","ok":false,"detail":"The token's contract does not tell the account's balance."},
				{"name":"allowance","ok":false,"detail":"The token's contract does not tell the settler's allowance."},` + deadlineOK + `,
				{"name":"settler","ok":false,"detail":"There is no contract at the input settler's address 0x0000000000000000000000000000010011155111."},` + approvedOK + `]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := payable()
			if c.change != nil {
				c.change(chain)
			}
			node := rpctest.NewNode(chain)
			s := start(t, func(settings *webtest.Settings) { settings.Intents.Chains = nodes(t, sepolia, node) })
			account := webtest.Keyed(uuid.New(), "test")
			_, location, _ := s.CreateTransfer(t, c.request, account...)
			webtest.Same(t, name, webtest.Want(t, 200, c.want), s.preflight(t, location, account...))
			batches := 2 // the chain's number is asked for once
			if node.Calls()["eth_simulateV1"] > 0 {
				batches++
			}
			if n := node.Requests(); n != batches {
				t.Errorf("%d requests, want %d", n, batches)
			}
		})
	}
}

// A node without eth_simulateV1 cannot tell what happens after the approval, which is no reason not to send.
func TestPreflightTransfer_NotSimulated(t *testing.T) {
	t.Parallel()
	chain := payable()
	chain.SetFunction(usdc, rpctest.Allowance, returning(0))
	chain.SetFunction(sepoliaSettler, openSelector, reverting())
	node := rpctest.NewNode(chain)
	node.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_simulateV1": {Code: -32601, Message: "no such method"}}
	})
	s := start(t, func(settings *webtest.Settings) { settings.Intents.Chains = nodes(t, sepolia, node) })
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.SwapBody, account...)
	webtest.Same(t, "the answer", webtest.Want(t, 200, `{"ok":true,"gas":null,"checks":[`+balanceOK+`,{"name":"allowance","ok":true,"needed":true,
		"detail":"The settler may draw 0 units of the token, and the transaction needs 5; the approval that is sent first grants it."},`+deadlineOK+`,`+settlerOK+`,
		{"name":"simulation","ok":true,"unknown":true,"detail":"The node cannot simulate the transaction after its approval, so neither whether it succeeds nor its gas is known before the approval is in a block."}]}`),
		s.preflight(t, location, account...))
}

func TestPreflightTransfer_Refused(t *testing.T) {
	t.Parallel()
	first, second := rpctest.NewNode(payable()), rpctest.NewNode(payable())
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, first, second) })
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.SwapBody, account...)
	webtest.Same(t, "query", webtest.Invalid(t, "now", "is not a known parameter"), s.Call(t, "GET", location+"/preflight?now=1", "", account...))
	webtest.Same(t, "another account", webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer."),
		s.Call(t, "GET", location+"/preflight", "", webtest.Keyed(uuid.New(), "test")...))

	good := s.preflight(t, location, account...)
	if got := good.Body.(map[string]any)["ok"]; got != true {
		t.Errorf("all is well: %v", good)
	}
	webtest.Same(t, "a key of the other environment", good, s.preflight(t, location, webtest.Keyed(owner, "live")...))
	first.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_call": {Code: -32005, Message: "rate limit"}}
	})
	webtest.Same(t, "the first node is over its limit", good, s.preflight(t, location, account...))
	second.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_call": {Code: -32601, Message: "no such method"}}
	})
	webtest.Same(t, "all nodes fail", webtest.Refused(t, 503, "SERVICE_UNAVAILABLE", "No node of chain eip155:11155111 answers; try again in a second.", "Retry-After", "1"),
		s.preflight(t, location, account...))

	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'cancelled', cancelled_at = now()`)
	webtest.Same(t, "cancelled", webtest.Conflict(t, "cancelled", "The intent's status, its deadline or its deployment does not allow this; see details.status and read it again."), s.preflight(t, location, account...))
}

// A node that hangs leaves time for the next one and for the answer.
func TestPreflightTransfer_Timeout(t *testing.T) {
	t.Parallel()
	slow, next := rpctest.NewNode(payable()), rpctest.NewNode(payable())
	client := nodes(t, sepolia, slow, next)
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = client })
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.SwapBody, account...)
	slow.Set(func(f *rpctest.Faults) { f.Delay = time.Minute })
	if got := s.preflight(t, location, account...); got.Status != 200 {
		t.Errorf("the next node: %+v", got)
	}
	next.Set(func(f *rpctest.Faults) { f.Delay = time.Minute })
	began := time.Now()
	webtest.Same(t, "both hang", webtest.Refused(t, 503, "SERVICE_UNAVAILABLE", "No node of chain eip155:11155111 answers; try again in a second.", "Retry-After", "1"),
		s.preflight(t, location, account...))
	if took := time.Since(began); took > 4500*time.Millisecond {
		t.Errorf("the answer took %v", took)
	}
}

func TestPreflightTransfer_ChainWithoutProviders(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*rpc.Client{"no client": nil, "another chain": nodes(t, baseSepolia, rpctest.NewNode(rpctest.NewChain(84532)))} {
		s := start(t, func(c *webtest.Settings) { c.Intents.Chains = client })
		account := webtest.Keyed(uuid.New(), "test")
		_, location, _ := s.CreateTransfer(t, webtest.SwapBody, account...)
		want := webtest.Refused(t, 422, "CHAIN_NOT_WATCHED", "The operator has configured no node for this chain, so nothing can be asked there; GET /v2/chains says which chains are watched.")
		if diff := cmp.Diff(want, s.preflight(t, location, account...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Simulations leave half of a provider's calls to the watcher.
func TestPreflightTransfer_BusyProvider(t *testing.T) {
	t.Parallel()
	node := rpctest.NewNode(payable())
	client, err := rpc.NewClient(rpc.Providers{sepolia: {{URL: telemetry.Secret(node.URL()), RequestsPerSecond: 10}}}, rpc.Options{Transport: rpctest.Transport(node)})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = client })
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.SwapBody, account...)
	statuses := map[int]int{}
	for range 5 {
		statuses[s.preflight(t, location, account...).Status]++
	}
	if statuses[200] == 0 || statuses[503] == 0 || statuses[200]+statuses[503] != 5 {
		t.Errorf("five simulations of five calls each at ten calls a second: %v", statuses)
	}
}
