package watch_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/watch"
	"intents.internal/pkg/telemetry"
)

// A flood of reports takes half of a provider's calls; the rest is left to the polls.
func TestReported_FloodLeavesCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		number, _ := sepolia.Number()
		chain := rpctest.NewChain(number)
		chain.MineEmpty(30)
		node := rpctest.NewNode(chain)
		client, err := rpc.NewClient(rpc.Providers{sepolia: {{URL: telemetry.Secret(node.URL()), RequestsPerSecond: 100}}},
			rpc.Options{Transport: rpctest.Transport(node)})
		if err != nil {
			t.Fatal(err)
		}
		watcher := watch.New(watch.Config{Client: client, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go watcher.RunReports(ctx)
		for n := range 1000 {
			watcher.Reported(sepolia, uuid.New(), uuid.New(), common.Hash{byte(n >> 8), byte(n), 1})
		}
		synctest.Wait()
		providers, _ := client.Chain(sepolia)
		started := time.Now()
		blocks := make([]uint64, 30)
		if _, err := rpc.FetchAll(t.Context(), providers.All()[0], blocks, func(n uint64) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(n)) }); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(started); waited != 0 {
			t.Errorf("a poll of 30 calls waited %v", waited)
		}
		if n := node.Calls()["eth_getTransactionByHash"]; n < 40 || n > 60 {
			t.Errorf("%d reports were looked up, want about half of a second's 100 calls", n)
		}
	})
}
