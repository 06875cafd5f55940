package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/chains/rpc"
	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/chains"
	"intents.internal/core/store/pgtest"
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

var baseSettler = common.HexToAddress("0x84532")

// settledBase is Base Sepolia with a settler that knows none of the orders and asks 77 wei for a refund.
func settledBase() *rpctest.Chain {
	chain := rpctest.NewChain(84532)
	chain.SetTime(time.Now())
	chain.MineEmpty(1)
	chain.SetFunction(baseSettler, rpctest.OrderStatus, func(rpctest.Call) ([]byte, error) { return rpctest.Word(0), nil })
	chain.SetFunction(baseSettler, rpctest.QuoteGasPayment, func(c rpctest.Call) ([]byte, error) {
		if string(c.Data[4:]) != string(rpctest.Word(11155111)) {
			return nil, rpctest.Revert{}
		}
		return rpctest.Word(77), nil
	})
	return chain
}

// createOpen makes a bridge whose order is open and past its deadline, also on its destination chain, which was read since.
func (s *service) createOpen(t *testing.T, owner uuid.UUID) (location string) {
	t.Helper()
	_, location, _ = s.create(t, bridgeBody, keyed(owner, "test")...)
	s.observe(t, owner, location, chains.Progress{Head: 111, Confirmed: 100, Final: 88}, transactionOn(sepolia, transfer.RoleOpen, "a", 100))
	pgtest.Exec(t, s.store, `UPDATE transfers SET deadline = now() - interval '1 min'`)
	s.readBase(t, "now()")
	return location
}

// readBase has Base Sepolia be read completely up to a time.
func (s *service) readBase(t *testing.T, until string) {
	t.Helper()
	pgtest.Exec(t, s.store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, head_number, confirmed_block, final_block, read_at, complete_until)
		VALUES ('eip155:84532', 'core', 1, '-infinity', 1, 1, 1, now(), `+until+`) ON CONFLICT (chain_id) DO UPDATE SET complete_until = excluded.complete_until`)
}

func TestGetRefund(t *testing.T) {
	t.Parallel()
	owner := uuid.New()
	account := keyed(owner, "test")
	first, second := rpctest.NewNode(settledBase()), rpctest.NewNode(settledBase())
	s := start(t, func(c *settings) { c.intents.Chains = nodes(t, baseSepolia, first, second) })
	location := s.createOpen(t, owner)
	order := s.call(t, "GET", location, "", account...).Body.(map[string]any)["order"].(map[string]any)
	deadline := fmt.Sprintf("%08x", uint32(order["fillDeadline"].(float64)))
	data := "0x0cbd66e3" + strings.Repeat("0", 62) + "20" + strings.Repeat("0", 63) + "1" + strings.Repeat("0", 62) + "20" +
		strings.Repeat("0", 56) + deadline + "08d75650babf4de09c9273d48ef647876057ed91d4323f8a2e3ebc2cd8a63b5e" +
		strings.Repeat("0", 62) + "60" + strings.Repeat("0", 61) + "1c0" + order["orderData"].(string)[2:]
	const settler = "0x0000000000000000000000000000000000084532"
	refund := want(t, 200, `{"tx":{"chainId":84532,"from":"`+alice+`","to":"`+settler+`","value":"77","data":"`+data+`","allowances":[],
		"calls":{"version":"2.0.0","chainId":"0x14a34","from":"`+alice+`","atomicRequired":false,"calls":[{"to":"`+settler+`","value":"0x4d","data":"`+data+`"}]}}}`)
	same(t, "refund", refund, s.call(t, "GET", location+"/refund", "", account...))
	same(t, "a key of the other environment", refund, s.call(t, "GET", location+"/refund", "", keyed(owner, "live")...))
	same(t, "query", invalid(t, "now", "is not a known parameter"), s.call(t, "GET", location+"/refund?now=1", "", account...))
	same(t, "another account", refused(t, 404, "NOT_FOUND", "The account has no such transfer."),
		s.call(t, "GET", location+"/refund", "", keyed(uuid.New(), "test")...))

	first.Set(func(f *rpctest.Faults) { f.Down = true })
	same(t, "the first node is down", refund, s.call(t, "GET", location+"/refund", "", account...))
	second.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_call": {Code: -32603, Message: "internal"}}
	})
	same(t, "all nodes fail", refused(t, 503, "SERVICE_UNAVAILABLE", "No node of chain eip155:84532 answers; try again in a second.", "Retry-After", "1"),
		s.call(t, "GET", location+"/refund", "", account...))
	if log := s.log.String(); !strings.Contains(log, "error -32603: internal") {
		t.Errorf("the log does not name the cause:\n%s", log)
	}
}

func TestGetRefund_NotRefundable(t *testing.T) {
	t.Parallel()
	owner := uuid.New()
	account := keyed(owner, "test")
	chain := settledBase()
	node := rpctest.NewNode(chain)
	s := start(t, func(c *settings) { c.intents.Chains = nodes(t, baseSepolia, node) })
	no := refused(t, 409, "NOT_REFUNDABLE",
		"There is no order to refund: it must be open, past its deadline and neither filled nor refunded. See refundable in the intent's record.")
	_, created, _ := s.create(t, bridgeBody, account...)
	same(t, "created", no, s.call(t, "GET", created+"/refund", "", account...))
	location := s.createOpen(t, owner)
	pgtest.Exec(t, s.store, `UPDATE transfers SET deadline = now() + interval '1 min'`)
	same(t, "before the deadline", no, s.call(t, "GET", location+"/refund", "", account...))
	if n := node.Requests(); n != 0 {
		t.Errorf("the node was asked %d times", n)
	}

	pgtest.Exec(t, s.store, `UPDATE transfers SET deadline = now() - interval '1 min'`)
	chain.SetFunction(baseSettler, rpctest.OrderStatus, func(rpctest.Call) ([]byte, error) { return rpctest.Text("FILLED"), nil })
	same(t, "filled a moment ago", no, s.call(t, "GET", location+"/refund", "", account...))
	busy := refused(t, 503, "SERVICE_UNAVAILABLE", "No node of chain eip155:84532 answers; try again in a second.", "Retry-After", "1")
	node.Follow(settledBase().Fork(0)) // whose only block is older than the intent
	same(t, "the node lags", busy, s.call(t, "GET", location+"/refund", "", account...))
	node.Follow(rpctest.NewChain(84532))
	same(t, "there is no settler", busy, s.call(t, "GET", location+"/refund", "", account...))
}

// The record and the endpoint go by the same clock, the destination chain's.
func TestGetRefund_AsTheRecordSays(t *testing.T) {
	t.Parallel()
	owner := uuid.New()
	account := keyed(owner, "test")
	s := start(t, func(c *settings) { c.intents.Chains = nodes(t, baseSepolia, rpctest.NewNode(settledBase())) })
	location := s.createOpen(t, owner)
	for until, refundable := range map[string]bool{"NULL": false, "now() - interval '2 min'": false, "now()": true} {
		s.readBase(t, until)
		record := s.call(t, "GET", location, "", account...).Body.(map[string]any)
		status := map[bool]int{true: 200, false: 409}[refundable]
		if got := s.call(t, "GET", location+"/refund", "", account...).Status; record["refundable"] != refundable || got != status {
			t.Errorf("read until %s: refundable %v, status %d", until, record["refundable"], got)
		}
	}
}

func TestGetRefund_ChainWithoutProviders(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*rpc.Client{"no client": nil, "another chain": nodes(t, sepolia, rpctest.NewNode(rpctest.NewChain(11155111)))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := uuid.New()
			s := start(t, func(c *settings) { c.intents.Chains = client })
			same(t, name, refused(t, 503, "CHAIN_NOT_WATCHED", "The operator has configured no node for this chain, so nothing can be asked there."),
				s.call(t, "GET", s.createOpen(t, owner)+"/refund", "", keyed(owner, "test")...))
		})
	}
}
