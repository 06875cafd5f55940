package main_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	main "intents.internal/deploy/chains"

	"intents.internal/deploy/chains/contracts/contractstest"
)

const (
	chainA = "eip155:31337"
	chainB = "eip155:31338"
)

var (
	settler = common.HexToAddress("0x048e6f1D1922cE4A0d528cfdC9D945Cfb1DA4000")
	tUSDC   = common.HexToAddress("0xE1620de3a36756143582895e7E426Ade69e4f2D7")
	tWETH   = common.HexToAddress("0x1Fa5e93549a4c07583E8e20806E5249AB96D7321")
	tFEE    = common.HexToAddress("0xEf8a97B2855FCb4445800a67Af9983f18E9c0B4D")

	domains = map[string]uint32{chainA: 31337, chainB: 31338}
)

// order is an open order of the tests.
type order struct {
	contractstest.OnchainOrder
	id                  common.Hash
	origin, destination string
}

// newOrder approves and opens an order of 5 tUSDC for 0.001 tWETH.
func newOrder(t *testing.T, p *program, sender common.Address, origin, destination string, deadline time.Time) order {
	t.Helper()
	data := contractstest.OrderData{
		Sender: bytes32(sender), Recipient: bytes32(sender), InputToken: bytes32(tUSDC), OutputToken: bytes32(tWETH),
		AmountIn: big.NewInt(5e6), AmountOut: big.NewInt(1e15), SenderNonce: big.NewInt(time.Now().UnixNano()),
		OriginDomain: domains[origin], DestinationDomain: domains[destination],
		DestinationSettler: bytes32(settler), FillDeadline: uint32(deadline.Unix()),
	}
	o := order{OnchainOrder: data.Order(), id: data.ID(), origin: origin, destination: destination}
	// The two are sent at once, as they are pasted.
	send(t, p, origin, sender, tUSDC, nil, pack(t, main.Token, "approve", settler, data.AmountIn))
	mined(t, p, origin, send(t, p, origin, sender, settler, nil, pack(t, main.Settler, "open", o.OnchainOrder)))
	o.expect(t, p, origin, "OPENED")
	return o
}

// fill pays the order's output on its destination.
func (o order) fill(t *testing.T, p *program, filler common.Address) {
	t.Helper()
	receiver := bytes32(filler)
	send(t, p, o.destination, filler, tWETH, nil, pack(t, main.Token, "approve", settler, big.NewInt(1e15)))
	mined(t, p, o.destination, send(t, p, o.destination, filler, settler, nil,
		pack(t, main.Settler, "fill", o.id, o.OrderData, receiver[:])))
}

func (o order) status(t *testing.T, p *program, chain string) string {
	t.Helper()
	status := call[[32]byte](t, p, chain, settler, main.Settler, "orderStatus", o.id)
	return strings.TrimRight(string(status[:]), "\x00")
}

func (o order) expect(t *testing.T, p *program, chain, want string) {
	t.Helper()
	if status := o.status(t, p, chain); status != want {
		t.Fatalf("on %s the order is %q, want %q", chain, status, want)
	}
}

func (o order) await(t *testing.T, p *program, chain, want string) {
	t.Helper()
	eventually(t, func() error {
		if status := o.status(t, p, chain); status != want {
			return fmt.Errorf("on %s the order is %q, want %q", chain, status, want)
		}
		return nil
	})
}

// settle sends the message that the order was filled.
func (o order) settle(t *testing.T, p *program, sender common.Address) {
	t.Helper()
	mined(t, p, o.destination, send(t, p, o.destination, sender, settler, o.messageFee(t, p),
		pack(t, main.Settler, "settle", [][32]byte{o.id})))
}

func (o order) messageFee(t *testing.T, p *program) *big.Int {
	t.Helper()
	return call[*big.Int](t, p, o.destination, settler, main.Settler, "quoteGasPayment", domains[o.origin])
}

func TestBridge(t *testing.T) {
	t.Parallel()
	sender, filler := newAccount(t, 0), newAccount(t, 1)
	before := balance(t, shared, chainA, tUSDC, filler)
	o := newOrder(t, shared, sender, chainA, chainB, time.Now().Add(time.Minute))
	o.fill(t, shared, filler)
	o.expect(t, shared, chainA, "OPENED")
	o.expect(t, shared, chainB, "FILLED")
	o.settle(t, shared, filler)
	o.await(t, shared, chainA, "SETTLED")
	if paid := new(big.Int).Sub(balance(t, shared, chainA, tUSDC, filler), before); paid.Cmp(big.NewInt(5e6)) != 0 {
		t.Errorf("the filler has %s more, want 5000000", paid)
	}
}

func TestSwap(t *testing.T) {
	t.Parallel()
	o := newOrder(t, shared, newAccount(t, 2), chainB, chainB, time.Now().Add(time.Minute))
	o.fill(t, shared, newAccount(t, 3))
	o.expect(t, shared, chainB, "SETTLED")
}

// The settler opens orders whose deadline has passed, which saves the test the wait.
func TestRefund(t *testing.T) {
	t.Parallel()
	sender := newAccount(t, 4)
	before := balance(t, shared, chainB, tUSDC, sender)
	o := newOrder(t, shared, sender, chainB, chainA, time.Now().Add(-time.Minute))
	mined(t, shared, chainA, send(t, shared, chainA, sender, settler, o.messageFee(t, shared),
		pack(t, main.Settler, "refund", []contractstest.OnchainOrder{o.OnchainOrder})))
	o.await(t, shared, chainB, "REFUNDED")
	if after := balance(t, shared, chainB, tUSDC, sender); after.Cmp(before) != 0 {
		t.Errorf("the sender has %s after the refund and had %s", after, before)
	}
}

// A filler whose data is no address keeps neither the relay nor another order of its message from going on.
func TestRelay_BadFillerData(t *testing.T) {
	t.Parallel()
	sender, filler := newAccount(t, 5), newAccount(t, 6)
	bad := newOrder(t, shared, sender, chainA, chainB, time.Now().Add(time.Minute))
	send(t, shared, chainB, filler, tWETH, nil, pack(t, main.Token, "approve", settler, big.NewInt(1e15)))
	mined(t, shared, chainB, send(t, shared, chainB, filler, settler, nil, pack(t, main.Settler, "fill", bad.id, bad.OrderData, []byte{1})))
	good := newOrder(t, shared, sender, chainA, chainB, time.Now().Add(time.Minute))
	good.fill(t, shared, filler)
	mined(t, shared, chainB, send(t, shared, chainB, filler, settler, good.messageFee(t, shared),
		pack(t, main.Settler, "settle", [][32]byte{bad.id, good.id})))
	good.await(t, shared, chainA, "SETTLED")
	bad.expect(t, shared, chainA, "OPENED")
}

func bytes32(account common.Address) [32]byte { return common.BytesToHash(account.Bytes()) }

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
func send(t *testing.T, p *program, chain string, from, to common.Address, value *big.Int, data hexutil.Bytes) common.Hash {
	t.Helper()
	return request[common.Hash](t, p, chain, "eth_sendTransaction", map[string]any{
		"from": from, "to": to, "value": (*hexutil.Big)(value), "data": data,
	})
}

// mined waits for a transaction that must succeed.
func mined(t *testing.T, p *program, chain string, hash common.Hash) {
	t.Helper()
	type receipt struct{ Status hexutil.Uint64 }
	eventually(t, func() error {
		r := request[*receipt](t, p, chain, "eth_getTransactionReceipt", hash)
		if r == nil {
			return fmt.Errorf("%s is in no block", hash)
		}
		if r.Status != 1 {
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
