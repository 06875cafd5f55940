package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

// connect is a chain over nodes with sockets.
func connect(t *testing.T, options rpc.Options, nodes ...*rpctest.Node) *rpc.Chain {
	t.Helper()
	id := caip.EIP155Chain(1)
	var endpoints []rpc.Endpoint
	for _, n := range nodes {
		endpoints = append(endpoints, rpc.Endpoint{URL: telemetry.Secret(n.URL()), RequestsPerSecond: 10000})
	}
	client, err := rpc.NewClient(rpc.Providers{id: endpoints}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	chain, _ := client.Chain(id)
	return chain
}

func TestProvider_Batch(t *testing.T) {
	t.Parallel()
	chain := rpctest.NewChain(1)
	chain.MineEmpty(250)
	node := rpctest.Serve(t, chain)
	p := connect(t, rpc.Options{}, node).All()[0]
	var requests []rpc.Request
	var calls []*rpc.Call[*evm.Block]
	for i := range uint64(251) {
		call := rpc.BlockByNumber(rpc.Number(i))
		calls, requests = append(calls, call), append(requests, call)
	}
	unknown := rpc.BlockByNumber(rpc.Number(1000))
	if err := p.Do(t.Context(), append(requests, unknown)...); err != nil {
		t.Fatal(err)
	}
	for i, call := range calls {
		if block, err := call.Result(); err != nil || block.Hash != chain.Block(uint64(i)).Hash {
			t.Fatalf("block %d: %v, %v", i, block, err)
		}
	}
	if block, err := unknown.Result(); block != nil || err != nil {
		t.Errorf("an unknown block: %v, %v", block, err)
	}
	if got := node.Requests(); got != 4 { // eth_chainId, then 100, 100 and 52 calls
		t.Errorf("%d requests, want 4", got)
	}
}

func TestProvider_ResponseOrder(t *testing.T) {
	t.Parallel()
	p := handled(t, func(w http.ResponseWriter, body string) {
		var requests []struct{ ID, Method any }
		if err := json.Unmarshal([]byte(body), &requests); err != nil {
			fmt.Fprintf(w, `{"id":%s,"result":"0x0"}`, ids.FindStringSubmatch(body)[1])
			return
		}
		slices.Reverse(requests)
		var answers []string
		for i, r := range requests {
			answers = append(answers, fmt.Sprintf(`{"id":%v,"result":"0x%d"}`, r.ID, i+1))
		}
		fmt.Fprint(w, " \n["+strings.Join(answers, ",")+"]")
	})
	first, second := rpc.TransactionCount(common.Address{}, rpc.Latest), rpc.EstimateGas(rpc.Message{})
	if err := p.Do(t.Context(), first, second); err != nil {
		t.Fatal(err)
	}
	a, errA := first.Result()
	b, errB := second.Result()
	if a != 2 || b != 1 || errA != nil || errB != nil {
		t.Errorf("got %d, %v and %d, %v; want 2 and 1", a, errA, b, errB)
	}
	if err := p.Do(t.Context(), first); err != nil || first.Err() != nil {
		t.Errorf("a call alone is not sent as an object: %v, %v", err, first.Err())
	}
}

func TestProvider_Canceled(t *testing.T) {
	t.Parallel()
	node := rpctest.Serve(t, rpctest.NewChain(1))
	chain := connect(t, rpc.Options{}, node)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := chain.All()[0].Do(ctx, rpc.ChainID()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The data of a log that is larger than any of ours are not kept.
func TestLogs_MaxData(t *testing.T) {
	t.Parallel()
	chain := rpctest.NewChain(1)
	chain.Mine(rpctest.Tx{Logs: []rpctest.Log{{Topics: []common.Hash{{1}}, Data: make([]byte, 100)}, {Topics: []common.Hash{{1}}, Data: make([]byte, 101)}}})
	p := inMemory(t, rpc.Endpoint{}, nil, rpctest.NewNode(chain)).All()[0]
	logs, err := rpc.Fetch(t.Context(), p, rpc.Logs(rpc.LogFilter{From: 1, To: 1, MaxData: 100}))
	if err != nil || len(logs) != 2 || len(logs[0].Data) != 100 || logs[1].Data != nil {
		t.Errorf("%+v, %v", logs, err)
	}
}
