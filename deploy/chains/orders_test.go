package main_test

import (
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	main "intents.internal/deploy/chains"

	"intents.internal/deploy/chains/contracts"
)

const (
	chainA = "eip155:31337"
	chainB = "eip155:31338"

	// The statuses of an order at its input settler.
	deposited, claimed = 1, 2
)

var (
	inputSettler  = common.HexToAddress("0x048e6f1D1922cE4A0d528cfdC9D945Cfb1DA4000")
	outputSettler = common.HexToAddress("0x5F2Ea4d5a009389D7b2760e7afd010478f591b63")
	oracle        = common.HexToAddress("0x8128063E529C78CAe52e6100D715C5e993620B5c")

	tUSDC = common.HexToAddress("0xE1620de3a36756143582895e7E426Ade69e4f2D7")
	tWETH = common.HexToAddress("0x1Fa5e93549a4c07583E8e20806E5249AB96D7321")
	tFEE  = common.HexToAddress("0xEf8a97B2855FCb4445800a67Af9983f18E9c0B4D")
	tUSDT = common.HexToAddress("0x7688CF3f08d8bd601797a7776eCA1dd71A0bB581")
	tEURC = common.HexToAddress("0x0Ae627987397e9aaADEeea8D9B57E01C48c504FE")

	chainIDs = map[string]int64{chainA: 31337, chainB: 31338}
)

// order is an open order of the tests.
type order struct {
	contracts.StandardOrder
	id                  common.Hash
	origin, destination string
}

// newOrder approves and opens an order of 5 tUSDC, which expires in a minute: a swap for an amount of tWETH, or a bridge for one of the native
// token.
func newOrder(t *testing.T, p *program, user common.Address, origin, destination string, amount int64) order {
	t.Helper()
	return newOrderUntil(t, p, user, origin, destination, amount, time.Minute)
}

func newOrderUntil(t *testing.T, p *program, user common.Address, origin, destination string, amount int64, lifetime time.Duration) order {
	t.Helper()
	deadline, at, token := time.Now().Add(lifetime), oracle, common.Address{}
	if origin == destination {
		at, token = outputSettler, tWETH
	}
	o := order{origin: origin, destination: destination, StandardOrder: contracts.StandardOrder{
		User: user, Nonce: big.NewInt(time.Now().UnixNano()), OriginChainId: big.NewInt(chainIDs[origin]),
		Expires: uint32(deadline.Unix()), FillDeadline: uint32(deadline.Unix()), InputOracle: at,
		Inputs: [][2]*big.Int{{tUSDC.Big(), big.NewInt(5e6)}},
		Outputs: []contracts.MandateOutput{{
			Oracle: contracts.Word(at), Settler: contracts.Word(outputSettler), ChainId: big.NewInt(chainIDs[destination]),
			Token: contracts.Word(token), Amount: big.NewInt(amount), Recipient: contracts.Word(user),
		}},
	}}
	o.id = call[[32]byte](t, p, origin, inputSettler, main.InputSettler, "orderIdentifier", o.StandardOrder)
	// The two are sent at once, as they are pasted.
	send(t, p, origin, user, tUSDC, pack(t, main.Token, "approve", inputSettler, big.NewInt(5e6)))
	mined(t, p, origin, send(t, p, origin, user, inputSettler, pack(t, main.InputSettler, "open", o.StandardOrder)))
	o.expect(t, p, deposited)
	return o
}

func (o order) expect(t *testing.T, p *program, want uint8) {
	t.Helper()
	if status := call[uint8](t, p, o.origin, inputSettler, main.InputSettler, "orderStatus", o.id); status != want {
		t.Fatalf("the order's status is %d, want %d", status, want)
	}
}

func (o order) awaitClaimed(t *testing.T, p *program) {
	t.Helper()
	eventually(t, func() error {
		if status := call[uint8](t, p, o.origin, inputSettler, main.InputSettler, "orderStatus", o.id); status != claimed {
			return fmt.Errorf("the order's status is %d, want %d", status, claimed)
		}
		return nil
	})
}

// The solver fills and claims orders that are worth it. After a restart it claims what it had filled, which is attested then.
func TestSolver(t *testing.T) {
	t.Parallel()
	intents := make(chan common.Hash, 3)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case id := <-intents:
			fmt.Fprintf(w, `{"events":[{"data":{"orderId":%q}}],"next":"cursor"}`, id)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(gateway.Close)
	dir := t.TempDir()
	p := start(t, dir, "-gateway", gateway.URL)
	checkQuote(t, p)
	dear := newOrder(t, p, newAccount(t, 0), chainA, chainA, 2e15)
	intents <- dear.id
	swap := newOrder(t, p, newAccount(t, 0), chainA, chainA, 1e15)
	intents <- swap.id
	swap.awaitClaimed(t, p)
	dear.expect(t, p, deposited)
	bridge := newOrder(t, p, newAccount(t, 0), chainA, chainB, 1e15)
	intents <- bridge.id
	eventually(t, func() error {
		record := call[[32]byte](t, p, chainB, outputSettler, main.OutputSettler, "getFillRecord", bridge.id, bridge.Outputs[0])
		if record == [32]byte{} {
			return errNotYet
		}
		return nil
	})
	p.kill()
	p = start(t, dir, "-gateway", gateway.URL)
	intents <- bridge.id
	bridge.awaitClaimed(t, p)
}

// With the manners of the framework's own solver an order that is taken otherwise is left alone: one whose deadline is within the window when
// the opening is deep enough to be judged, and one that asks for all that was quoted before the price moved. It is judged once: not again by
// the same solver, and not at all by one that starts afterwards with other prices.
func TestSolver_Manners(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "" {
			fmt.Fprint(w, `{"events":[],"next":"cursor"}`) // the orders are of other accounts
			return
		}
		<-r.Context().Done()
	}))
	t.Cleanup(gateway.Close)
	const finality, quoted = 16, 1661666666666666 // 4.985 of 5 tUSDC, in the native token
	dir := t.TempDir()
	p := start(t, dir, "-gateway", gateway.URL, "-judge-once", "-min-expiry", "45s", "-finality", fmt.Sprint(finality), "-price-move", "50")
	user := newAccount(t, 0)
	near := newOrderUntil(t, p, user, chainA, chainB, quoted*99/100, 50*time.Second)
	whole := newOrderUntil(t, p, user, chainA, chainB, quoted, 10*time.Minute)
	reserved := newOrderUntil(t, p, user, chainA, chainB, quoted*99/100, 10*time.Minute)
	opened := blockNumber(t, p, chainA)
	filled := func(o order) bool {
		return call[[32]byte](t, p, chainB, outputSettler, main.OutputSettler, "getFillRecord", o.id, o.Outputs[0]) != [32]byte{}
	}
	eventually(t, func() error {
		if !filled(reserved) {
			return errNotYet
		}
		return nil
	})
	if depth := blockNumber(t, p, chainA) - opened + 1; depth < finality {
		t.Errorf("it was filled at a depth of %d", depth)
	}
	reserved.awaitClaimed(t, p) // the orders before it were judged
	if filled(near) || filled(whole) {
		t.Errorf("filled: near its deadline %t, for all that was quoted %t", filled(near), filled(whole))
	}
	p.kill()
	p = start(t, dir, "-gateway", gateway.URL, "-judge-once")
	later := newOrderUntil(t, p, user, chainA, chainB, quoted, 10*time.Minute)
	later.awaitClaimed(t, p)
	if filled(whole) {
		t.Error("an order that was opened before the start is filled")
	}
}

func blockNumber(t *testing.T, p *program, chain string) uint64 {
	t.Helper()
	return uint64(request[hexutil.Uint64](t, p, chain, "eth_blockNumber"))
}

// checkQuote asks what a bridge of 1,000 tUSDC to tUSDT brings. A second program cannot answer at the same address.
func checkQuote(t *testing.T, p *program) {
	t.Helper()
	const user = "14f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
	body := fmt.Sprintf(`{"intent":{"intentType":"oif-swap","inputs":[{"user":"0x00010000027a69%s","asset":"0x00010000027a6914%x","amount":"1000000000"}],`+
		`"outputs":[{"receiver":"0x00010000027a6a%s","asset":"0x00010000027a6a14%x"}]}}`, user, tUSDC, user, tUSDT)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.quotes+"/api/v1/quotes", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), `"amount":"997000000"`) {
		t.Errorf("the quote is %s, %v", text, err)
	}
	second, err := launch(t.TempDir(), "-gateway", "http://127.0.0.1:1", "-quotes", strings.TrimPrefix(p.quotes, "http://"))
	if err == nil {
		second.kill()
	}
	if err == nil || !strings.Contains(err.Error(), "-quotes: ") {
		t.Errorf("a second program at the same address: %v", err)
	}
}

// newAccount is a development account. Tests that read balances have one of their own.
func newAccount(t *testing.T, i int) common.Address {
	t.Helper()
	return crypto.PubkeyToAddress(main.DevelopmentKeys[i].PublicKey)
}

func pack(t *testing.T, contract abi.ABI, method string, args ...any) hexutil.Bytes {
	t.Helper()
	data, err := contract.Pack(method, args...)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return data
}

// send sends a transaction as wallets do, without gas and fees.
func send(t *testing.T, p *program, chain string, from, to common.Address, data hexutil.Bytes) common.Hash {
	t.Helper()
	return request[common.Hash](t, p, chain, "eth_sendTransaction", map[string]any{"from": from, "to": to, "data": data})
}

// mined waits for a transaction that must succeed.
func mined(t *testing.T, p *program, chain string, hash common.Hash) {
	t.Helper()
	eventually(t, func() error {
		receipt := request[*types.Receipt](t, p, chain, "eth_getTransactionReceipt", hash)
		if receipt == nil {
			return fmt.Errorf("%s is in no block", hash)
		}
		if receipt.Status != types.ReceiptStatusSuccessful {
			t.Fatalf("%s reverted", hash)
		}
		return nil
	})
}

// call reads a contract.
func call[T any](t *testing.T, p *program, chain string, to common.Address, contract abi.ABI, method string, args ...any) T {
	t.Helper()
	result := request[hexutil.Bytes](t, p, chain, "eth_call", map[string]any{"to": to, "data": pack(t, contract, method, args...)}, "latest")
	values, err := contract.Unpack(method, result)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return values[0].(T)
}

func balance(t *testing.T, p *program, chain string, token, account common.Address) *big.Int {
	t.Helper()
	return call[*big.Int](t, p, chain, token, main.Token, "balanceOf", account)
}
