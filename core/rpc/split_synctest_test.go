package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

// blocks gets so many blocks and returns how many requests that took.
func blocks(t *testing.T, p *rpc.Provider, node *rpctest.Node, calls int) (requests int) {
	t.Helper()
	before := node.Requests()
	numbers := make([]uint64, calls)
	for n := range numbers {
		numbers[n] = uint64(n)
	}
	got, err := rpc.FetchAll(t.Context(), p, numbers, func(n uint64) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(n)) })
	if err != nil {
		t.Fatal(err)
	}
	for n, block := range got {
		if block == nil || block.Number != uint64(n) {
			t.Fatalf("block %d is %v", n, block)
		}
	}
	return node.Requests() - before
}

// A node's limit of calls in a request is found by halving and kept; an hour later one request tries more.
func TestProvider_BatchLimit(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"one error for all": 0, "HTTP 400": 400, "HTTP 413": 413} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				chain := rpctest.NewChain(1)
				chain.MineEmpty(99)
				node := rpctest.NewNode(chain)
				p := inMemory(t, rpc.Endpoint{RequestsPerSecond: 1e6}, nil, node).All()[0]
				if got := blocks(t, p, node, 100); got != 2 { // with eth_chainId
					t.Errorf("%d requests without a limit", got)
				}
				node.Set(func(f *rpctest.Faults) { f.BatchLimit, f.BatchStatus = 3, status })
				blocks(t, p, node, 100)
				blocks(t, p, node, 100)
				if got := blocks(t, p, node, 99); got != 33 {
					t.Errorf("%d requests for 99 calls at three a request", got)
				}
				time.Sleep(time.Hour)
				if got := blocks(t, p, node, 99); got < 34 || got > 40 {
					t.Errorf("%d requests for 99 calls after an hour, which tries more once", got)
				}
				node.Set(func(f *rpctest.Faults) { f.BatchLimit = 0 })
				time.Sleep(time.Hour)
				for range 20 {
					blocks(t, p, node, 100)
				}
				if got := blocks(t, p, node, 100); got != 1 {
					t.Errorf("%d requests for 100 calls after the limit is gone", got)
				}
			})
		})
	}
}

// A node that rejects every request for an unknown reason has no limit of calls: nothing is learned from it.
func TestProvider_BatchRejected(t *testing.T) {
	t.Parallel()
	chain := rpctest.NewChain(1)
	chain.MineEmpty(99)
	node := rpctest.NewNode(chain)
	p := inMemory(t, rpc.Endpoint{RequestsPerSecond: 1e6}, nil, node).All()[0]
	blocks(t, p, node, 100)
	node.Set(func(f *rpctest.Faults) { f.Status = 400 })
	before := node.Requests()
	calls := []rpc.Request{rpc.BlockByNumber(rpc.Latest), rpc.BlockByNumber(rpc.Number(1)), rpc.BlockByNumber(rpc.Number(2)), rpc.BlockByNumber(rpc.Number(3))}
	if err := p.Do(t.Context(), calls...); !errors.Is(err, rpc.ErrTransport) || node.Requests() != before+3 {
		t.Errorf("got %v after %d requests, want three", err, node.Requests()-before)
	}
	node.Set(func(f *rpctest.Faults) { f.Status = 0 })
	if got := blocks(t, p, node, 100); got > 2 {
		t.Errorf("%d requests after that", got)
	}
}

// A response over 32 MiB is asked for in parts. One call whose response is too large fails alone.
func TestProvider_ResponseTooLarge(t *testing.T) {
	t.Parallel()
	huge := common.Hash{1}
	padding := map[bool]string{false: strings.Repeat("x", 7<<20), true: strings.Repeat("x", 33<<20)}
	p := handled(t, func(w http.ResponseWriter, body string) {
		var answers []string
		for i, id := range ids.FindAllStringSubmatch(body, -1) {
			hash := common.HexToHash(strings.Split(strings.Split(body, `"params":["`)[i+1], `"`)[0])
			answers = append(answers, fmt.Sprintf(`{"id":%s,"result":{"transactionHash":"%s","blockNumber":"0x1","blockHash":"%[2]s","from":"%s","status":"0x1","logs":[],"pad":"%s"}}`,
				id[1], hash.Hex(), common.Address{}.Hex(), padding[hash == huge]))
		}
		text := strings.Join(answers, ",")
		if strings.HasPrefix(body, "[") {
			text = "[" + text + "]"
		}
		_, _ = io.WriteString(w, text)
	})
	hashes := []common.Hash{{2}, {3}, huge, {4}, {5}, {6}}
	answers, err := rpc.FetchEach(t.Context(), p, hashes, receipt)
	if err != nil {
		t.Fatal(err)
	}
	for n, a := range answers {
		if hashes[n] == huge {
			if !errors.Is(a.Err, rpc.ErrTooLarge) {
				t.Errorf("a receipt of 33 MiB: %v", a.Err)
			}
		} else if a.Err != nil || a.Value.TxHash != hashes[n] {
			t.Errorf("receipt %d: %v, %v", n, a.Value, a.Err)
		}
	}
}

// Logs that are still arriving when the time of a request is over are too many, and fewer are asked for. A node that has sent little is silent.
func TestProvider_LogsTooSlow(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "eth_getLogs") {
			result := map[bool]string{true: `"0x1"`, false: "null"}[strings.Contains(string(body), "eth_chainId")]
			_, _ = fmt.Fprintf(w, `{"id":%s,"result":%s}`, ids.FindStringSubmatch(string(body))[1], result)
			return
		}
		start, size := `{"pad":"`, 2<<20
		if body[0] == '[' {
			start = "[" + start
		}
		if strings.Contains(string(body), `"fromBlock":"0x7"`) {
			size = 1 << 10
		}
		_, _ = io.WriteString(w, start+strings.Repeat("x", size))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		from, to uint64
		want     error
	}{
		{1, 1, rpc.ErrTooLarge}, {1, 2, rpc.ErrRange}, {7, 7, context.DeadlineExceeded},
	} {
		p := provider(t, server.URL, rpc.Options{Timeout: time.Second})
		if _, _, err := rpc.ReadRange(t.Context(), p, rpc.LogFilter{From: c.from, To: c.to, Addresses: []common.Address{{1}}}); !errors.Is(err, c.want) {
			t.Errorf("blocks %d to %d: %v", c.from, c.to, err)
		}
	}
}

// A node that bounds its response, as go-ethereum does, leaves out the results beyond that: they are asked for again.
func TestProvider_ResponseCut(t *testing.T) {
	t.Parallel()
	p := handled(t, func(w http.ResponseWriter, body string) {
		found := ids.FindAllStringSubmatch(body, -1)
		if !strings.HasPrefix(body, "[") {
			_, _ = fmt.Fprintf(w, `{"id":%s,"result":"0x1"}`, found[0][1])
			return
		}
		var answers []string
		for i, id := range found {
			if i < 2 {
				answers = append(answers, fmt.Sprintf(`{"id":%s,"result":"0x1"}`, id[1]))
				continue
			}
			answers = append(answers, fmt.Sprintf(`{"id":%s,"error":{"code":-32003,"message":"response too large"}}`, id[1]))
		}
		_, _ = io.WriteString(w, "["+strings.Join(answers, ",")+"]")
	})
	addresses := make([]common.Address, 7)
	counts, err := rpc.FetchAll(t.Context(), p, addresses, func(a common.Address) *rpc.Call[uint64] { return rpc.TransactionCount(a, rpc.Latest) })
	if err != nil {
		t.Fatal(err)
	}
	for n, count := range counts {
		if count != 1 {
			t.Errorf("count %d is %d", n, count)
		}
	}
}

// Transactions that users name say nothing about the node: a client could switch off a provider by reporting such hashes.
func TestProvider_HostileHashes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chain := rpctest.NewChain(1)
		tx := rpctest.Tx{}
		chain.Mine(tx)
		good, other := rpctest.NewNode(chain), rpctest.NewNode(chain)
		providers := inMemory(t, rpc.Endpoint{RequestsPerSecond: 1e6}, nil, good, other)
		first := providers.Providers()[0]
		if err := head(t, first); err != nil {
			t.Fatal(err)
		}
		good.Set(func(f *rpctest.Faults) { f.Garbled = map[common.Hash]bool{chain.Hash(tx): true} })
		time.Sleep(time.Minute)
		for range 10 {
			if _, err := rpc.Fetch(t.Context(), first, rpc.TransactionByHash(chain.Hash(tx))); !errors.Is(err, rpc.ErrMalformed) {
				t.Errorf("a garbled transaction: %v", err)
			}
			answers, err := rpc.FetchEach(t.Context(), first, []common.Hash{chain.Hash(tx), {1}}, receipt)
			if err != nil || !errors.Is(answers[0].Err, rpc.ErrMalformed) || answers[1].Err != nil {
				t.Errorf("a garbled receipt and an unknown one: %v, %v", answers, err)
			}
		}
		if providers.Providers()[0] != first {
			t.Error("the provider is not preferred any more")
		}
	})
}

// slowly takes a second for each call of a request.
type slowly struct{ next http.RoundTripper }

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	select {
	case <-time.After(time.Duration(strings.Count(string(body), `"method"`)) * time.Second):
		return s.next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// A batch that takes too long is smaller the next time, so that large responses on a slow line do not fail for ever.
func TestProvider_BatchTooSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chain := rpctest.NewChain(1)
		node := rpctest.NewNode(chain)
		client, err := rpc.NewClient(rpc.Providers{caip.EIP155Chain(1): {{URL: telemetry.Secret(node.URL()), RequestsPerSecond: 1e6}}},
			rpc.Options{Transport: slowly{rpctest.Transport(node)}})
		if err != nil {
			t.Fatal(err)
		}
		known, _ := client.Chain(caip.EIP155Chain(1))
		var failures int
		for {
			calls := make([]rpc.Request, 100)
			for n := range calls {
				calls[n] = rpc.BlockByNumber(rpc.Latest)
			}
			err := known.All()[0].Do(t.Context(), calls...)
			if err == nil {
				break
			}
			if failures++; !errors.Is(err, context.DeadlineExceeded) || failures > 6 {
				t.Fatalf("failure %d: %v", failures, err)
			}
		}
		if failures < 3 {
			t.Errorf("%d failures until a batch of less than ten", failures)
		}
	})
}

// receipt gets a receipt with all of its logs.
func receipt(hash common.Hash) *rpc.Call[*evm.Receipt] {
	return rpc.Receipt(hash, func(evm.Log) bool { return true })
}

// A transaction whose receipt takes too long fails alone, and the node is not blamed; one that does not answer at all is.
func TestProvider_SlowReceipts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := rpctest.NewNode(rpctest.NewChain(1))
		chain := inMemory(t, rpc.Endpoint{RequestsPerSecond: 1e6}, nil, node, rpctest.NewNode(rpctest.NewChain(1)))
		p := chain.All()[0]
		hashes := make([]common.Hash, 100)
		slow := map[string]time.Duration{}
		for n := range hashes {
			if hashes[n] = (common.Hash{byte(n + 1)}); n%17 == 0 {
				slow[hashes[n].Hex()] = time.Hour
			}
		}
		if err := head(t, p); err != nil {
			t.Fatal(err)
		}
		node.Set(func(f *rpctest.Faults) { f.Delays = slow })
		began := time.Now()
		answers, err := rpc.FetchEach(t.Context(), p, hashes, receipt)
		if took := time.Since(began); err != nil || took > 30*time.Second {
			t.Fatalf("%v after %v", err, took)
		}
		for n, a := range answers {
			if _, isSlow := slow[hashes[n].Hex()]; errors.Is(a.Err, context.DeadlineExceeded) != isSlow || a.Err != nil && !isSlow {
				t.Errorf("receipt %d: %v", n, a.Err)
			}
		}
		if got := chain.Providers()[0]; got != p || !p.Healthy() {
			t.Errorf("the provider of slow receipts is blamed")
		}
		node.Set(func(f *rpctest.Faults) { f.Delay = time.Hour })
		began = time.Now()
		if _, err := rpc.FetchEach(t.Context(), p, hashes, receipt); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 16*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
