package api_test

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/core/web/api"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

// nodes is a client of a chain's nodes, of which none has a socket.
func nodes(t *testing.T, id caip.ChainID, all ...*rpctest.Node) *rpc.Client {
	t.Helper()
	var endpoints []rpc.Endpoint
	for _, n := range all {
		endpoints = append(endpoints, rpc.Endpoint{URL: telemetry.Secret(n.URL()), RequestsPerSecond: 1000})
	}
	client, err := rpc.NewClient(rpc.Providers{id: endpoints}, rpc.Options{Transport: rpctest.Transport(all...)})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// deposited is Sepolia with an input settler that holds the inputs of all orders.
func deposited() *rpctest.Chain {
	chain := rpctest.NewChain(11155111)
	chain.SetTime(time.Now())
	chain.MineEmpty(1)
	chain.SetFunction(sepoliaSettler, rpctest.OrderStatus, returning(uint64(transfer.OrderDeposited)))
	return chain
}

// createOpen makes a bridge whose order is open and has expired, also on its source chain, which was read since.
func (s *service) createOpen(t *testing.T, owner uuid.UUID) (location string) {
	t.Helper()
	_, location, _ = s.CreateTransfer(t, webtest.BridgeBody, webtest.Keyed(owner, "test")...)
	s.observe(t, owner, location, watched.Progress{Head: 111, Confirmed: 100, Final: 88}, transactionOn(sepolia, transfer.RoleOpen, "a", 100))
	pgtest.Exec(t, s.Store, `UPDATE transfers SET deadline = now() - interval '5 min', expires = now() - interval '1 min'`)
	s.readSepolia(t, "now()")
	return location
}

// readSepolia has Sepolia be read completely up to a time.
func (s *service) readSepolia(t *testing.T, until string) {
	t.Helper()
	pgtest.Exec(t, s.Store, `UPDATE watched_chains SET complete_until = `+until+` WHERE chain_id = 'eip155:11155111'`)
}

func TestGetRefund(t *testing.T) {
	t.Parallel()
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	first, second := rpctest.NewNode(deposited()), rpctest.NewNode(deposited())
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, first, second) })
	location := s.createOpen(t, owner)
	var record struct{ Order api.ClientOrder }
	if err := json.Unmarshal([]byte(webtest.ReadAll(t, s.Send(t, "GET", location, "", account...))), &record); err != nil {
		t.Fatal(err)
	}
	order := record.Order
	outputs := order.Encoded[len(order.Encoded)-12*32:] // the packed encoding ends with abi.encode of the outputs, whose first word is their offset
	address := func(a common.Address) []byte { return common.LeftPadBytes(a[:], 32) }
	nonce, _ := new(big.Int).SetString(order.Nonce, 10)
	data := "0x48f49eaf" + hex.EncodeToString(slices.Concat(
		rpctest.Word(32), address(order.User), common.BigToHash(nonce).Bytes(), rpctest.Word(11155111), rpctest.Word(uint64(order.Expires)),
		rpctest.Word(uint64(order.FillDeadline)), address(order.InputOracle), rpctest.Word(8*32), rpctest.Word(11*32),
		rpctest.Word(1), address(order.Inputs[0].Token), rpctest.Word(5), outputs,
	))
	const settler = "0x0000000000000000000000000000010011155111"
	refund := webtest.Want(t, 200, `{"tx":{"chainId":11155111,"from":"`+webtest.Alice+`","to":"`+settler+`","value":"0","data":"`+data+`","allowances":[],
		"calls":{"version":"2.0.0","chainId":"0xaa36a7","from":"`+webtest.Alice+`","atomicRequired":false,"calls":[{"to":"`+settler+`","value":"0x0","data":"`+data+`"}]}}}`)
	webtest.Same(t, "refund", refund, s.Call(t, "GET", location+"/refund", "", account...))
	webtest.Same(t, "a key of the other environment", refund, s.Call(t, "GET", location+"/refund", "", webtest.Keyed(owner, "live")...))
	webtest.Same(t, "query", webtest.Invalid(t, "now", "is not a known parameter"), s.Call(t, "GET", location+"/refund?now=1", "", account...))
	webtest.Same(t, "another account", webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer."),
		s.Call(t, "GET", location+"/refund", "", webtest.Keyed(uuid.New(), "test")...))

	first.Set(func(f *rpctest.Faults) { f.Down = true })
	webtest.Same(t, "the first node is down", refund, s.Call(t, "GET", location+"/refund", "", account...))
	second.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_call": {Code: -32603, Message: "internal"}}
	})
	webtest.Same(t, "all nodes fail", webtest.Refused(t, 503, "SERVICE_UNAVAILABLE", "No node of chain eip155:11155111 answers; try again in a second.", "Retry-After", "1"),
		s.Call(t, "GET", location+"/refund", "", account...))
	if log := s.Log.String(); !strings.Contains(log, "error -32603: internal") {
		t.Errorf("the log does not name the cause:\n%s", log)
	}
}

func TestGetRefund_NotRefundable(t *testing.T) {
	t.Parallel()
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	chain := deposited()
	node := rpctest.NewNode(chain)
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, node) })
	no := webtest.Refused(t, 409, "NOT_REFUNDABLE",
		"There is no order to refund: it must be open, expired and neither filled nor refunded. See refundable in the intent's record.")
	_, created, _ := s.CreateTransfer(t, webtest.BridgeBody, account...)
	webtest.Same(t, "created", no, s.Call(t, "GET", created+"/refund", "", account...))
	if n := node.Requests(); n != 0 {
		t.Errorf("the node was asked %d times", n)
	}

	location := s.createOpen(t, owner)
	chain.SetFunction(sepoliaSettler, rpctest.OrderStatus, returning(uint64(transfer.OrderClaimed)))
	webtest.Same(t, "claimed a moment ago", no, s.Call(t, "GET", location+"/refund", "", account...))
}

func TestGetRefund_ChainWithoutProviders(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*rpc.Client{"no client": nil, "another chain": nodes(t, baseSepolia, rpctest.NewNode(rpctest.NewChain(84532)))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := uuid.New()
			s := start(t, func(c *webtest.Settings) { c.Intents.Chains = client })
			webtest.Same(t, name, webtest.Refused(t, 422, "CHAIN_NOT_WATCHED", "The operator has configured no node for this chain, so nothing can be asked there; GET /v2/chains says which chains are watched."),
				s.Call(t, "GET", s.createOpen(t, owner)+"/refund", "", webtest.Keyed(owner, "test")...))
		})
	}
}
