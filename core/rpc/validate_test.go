package rpc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

// lying is a provider of a chain with a block of two logs, below two empty ones, whose node lies.
func lying(t *testing.T, change func(*rpctest.Faults)) (*rpc.Provider, common.Hash) {
	t.Helper()
	chain := rpctest.NewChain(1)
	chain.SetTag("safe", 1)
	chain.SetTag("finalized", 1)
	emitted := rpctest.Log{Address: common.Address{1}, Topics: []common.Hash{{1}}, Data: []byte{1}}
	tx := rpctest.Tx{Logs: []rpctest.Log{emitted, {Address: common.Address{1}, Topics: []common.Hash{{2}}}}}
	chain.Mine(tx)
	chain.MineEmpty(2)
	node := rpctest.NewNode(chain)
	node.Set(change)
	return provider(t, node.URL(), rpc.Options{Transport: rpctest.Transport(node)}), chain.Hash(tx)
}

// What an answer may not say is the fault of the provider.
func TestValidate(t *testing.T) {
	t.Parallel()
	always := func(value any) func(any) any { return func(any) any { return value } }
	hash := hexutil.Encode(common.Hash{7}.Bytes())
	head := func(p *rpc.Provider, _ common.Hash) error {
		_, err := rpc.ReadHead(t.Context(), p, rpc.Number(3), rpc.Safe, rpc.Finalized)
		return err
	}
	logs := func(to uint64) func(*rpc.Provider, common.Hash) error {
		return func(p *rpc.Provider, _ common.Hash) error {
			_, _, err := rpc.ReadRange(t.Context(), p, rpc.LogFilter{From: 1, To: to, Addresses: []common.Address{{1}}})
			return err
		}
	}
	receipt := func(p *rpc.Provider, tx common.Hash) error {
		_, err := rpc.Fetch(t.Context(), p, rpc.Receipt(tx, func(evm.Log) bool { return true }))
		return err
	}
	// nth changes one of the results of a method.
	nth := func(n int, lie rpctest.Lie) rpctest.Lie {
		calls := 0
		return func(method string, result rpctest.Result) rpctest.Result {
			if method == "eth_getBlockByNumber" {
				if calls++; calls != n {
					return result
				}
			}
			return lie(method, result)
		}
	}
	block := func(member string, value any) rpctest.Lie {
		return rpctest.LieIn("eth_getBlockByNumber", member, always(value))
	}
	for name, c := range map[string]struct {
		lie  rpctest.Lie
		read func(*rpc.Provider, common.Hash) error
	}{
		"safe after the newest":       {nth(3, block("number", "0x10000000000")), head},
		"finalized after the newest":  {nth(4, block("number", "0x4")), head},
		"a block with two hashes":     {nth(2, block("hash", hash)), head},
		"a time to come":              {block("timestamp", hexutil.EncodeUint64(uint64(time.Now().Add(time.Hour).Unix()))), head},
		"one index twice":             {rpctest.LieIn("eth_getLogs", "logIndex", always("0x1")), logs(2)},
		"one index twice, in receipt": {lieInLogs(func(l map[string]any) { l["logIndex"] = "0x1" }), receipt},
		"a log of another block":      {rpctest.LieIn("eth_getLogs", "blockHash", always(hash)), logs(1)},
		"two hashes of a block": {func(method string, result rpctest.Result) rpctest.Result {
			if method == "eth_getLogs" {
				result.([]any)[0].(map[string]any)["blockHash"] = hash
			}
			return result
		}, logs(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			honest, tx := lying(t, func(*rpctest.Faults) {})
			if err := c.read(honest, tx); err != nil {
				t.Errorf("without the lie: %v", err)
			}
			p, tx := lying(t, func(f *rpctest.Faults) { f.Lie = c.lie })
			if err := c.read(p, tx); !errors.Is(err, rpc.ErrMalformed) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// lieInLogs changes each log of the receipts.
func lieInLogs(change func(map[string]any)) rpctest.Lie {
	return rpctest.LieIn("eth_getTransactionReceipt", "logs", func(logs any) any {
		for _, l := range logs.([]any) {
			change(l.(map[string]any))
		}
		return logs
	})
}

// A load balancer that joins overlapping ranges returns logs twice: they are read once.
func TestReadRange_Duplicates(t *testing.T) {
	t.Parallel()
	p, _ := lying(t, func(f *rpctest.Faults) { f.Lie = rpctest.Duplicate })
	logs, last, err := rpc.ReadRange(t.Context(), p, rpc.LogFilter{From: 1, To: 2, Addresses: []common.Address{{1}}})
	if err != nil || len(logs) != 2 || last.Number != 2 {
		t.Errorf("%d logs up to %v, %v", len(logs), last, err)
	}
}

// A node that lags has no logs and no last block of the range.
func TestReadRange_Lags(t *testing.T) {
	t.Parallel()
	p, _ := lying(t, func(f *rpctest.Faults) { f.Lag = 3 })
	if _, _, err := rpc.ReadRange(t.Context(), p, rpc.LogFilter{From: 1, To: 2, Addresses: []common.Address{{1}}}); !errors.Is(err, rpc.ErrMissing) {
		t.Errorf("got %v", err)
	}
}

// A node that serves another chain is found out by the answer that shows its block.
func TestReadIdentified(t *testing.T) {
	t.Parallel()
	served := uint64(0)
	p, _ := lying(t, func(f *rpctest.Faults) {
		f.Lie = func(method string, result rpctest.Result) rpctest.Result {
			if method == "eth_chainId" && served != 0 {
				return hexutil.EncodeUint64(served)
			}
			return result
		}
	})
	if block, err := rpc.ReadIdentified(t.Context(), p, 2); err != nil || block.Number != 2 {
		t.Errorf("%+v, %v", block, err)
	}
	served = 5
	if _, err := rpc.ReadIdentified(t.Context(), p, 2); !errors.Is(err, rpc.ErrWrongChain) || p.Problem() == "" {
		t.Errorf("%v, %q", err, p.Problem())
	}
}

// Two spellings of a host are one host.
func TestProvider_Host(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://RPC.Example.org:443/a": "rpc.example.org", "https://rpc.example.org/b": "rpc.example.org", "https://rpc.example.org./b": "rpc.example.org",
		"http://rpc.example.org:443": "rpc.example.org:443", "http://rpc.example.org:80": "rpc.example.org", "http://[::1]:80": "[::1]", "http://[::1]:8545": "[::1]:8545",
	} {
		if got := provider(t, url, rpc.Options{}).Host(); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	id := caip.EIP155Chain(1)
	client, err := rpc.NewClient(rpc.Providers{id: {
		{URL: telemetry.Secret("https://RPC.Example.org:443/a")}, {URL: telemetry.Secret("https://rpc.example.org/b")},
	}}, rpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if chain, _ := client.Chain(id); chain.HasOther(chain.All()[0]) {
		t.Error("the other spelling counts as another provider")
	}
}
