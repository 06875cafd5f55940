package rpc_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/metricstest"
)

// inMemory is a chain over nodes without sockets, in the time of a bubble.
func inMemory(t *testing.T, endpoint rpc.Endpoint, registry prometheus.Registerer, nodes ...*rpctest.Node) *rpc.Chain {
	t.Helper()
	id := caip.EIP155Chain(1)
	var endpoints []rpc.Endpoint
	for _, n := range nodes {
		endpoint.URL = telemetry.Secret(n.URL())
		endpoints = append(endpoints, endpoint)
	}
	client, err := rpc.NewClient(rpc.Providers{id: endpoints}, rpc.Options{Transport: rpctest.Transport(nodes...), Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	chain, _ := client.Chain(id)
	return chain
}

func head(t *testing.T, p *rpc.Provider) error {
	t.Helper()
	call := rpc.BlockByNumber(rpc.Latest)
	if err := p.Do(t.Context(), call); err != nil {
		return err
	}
	return call.Err()
}

func TestProvider_Pause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := rpctest.NewNode(rpctest.NewChain(1))
		registry := prometheus.NewRegistry()
		p := inMemory(t, rpc.Endpoint{}, registry, node).All()[0]
		if err := head(t, p); err != nil {
			t.Fatal(err)
		}
		node.Set(func(f *rpctest.Faults) { f.Status = 429 })
		for _, pause := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			before := node.Requests()
			if err := head(t, p); !errors.Is(err, rpc.ErrRate) || node.Requests() != before+1 {
				t.Fatalf("got %v after %d requests", err, node.Requests()-before)
			}
			time.Sleep(time.Duration(pause)*time.Second - time.Millisecond)
			if err := head(t, p); !errors.Is(err, rpc.ErrRate) || node.Requests() != before+1 {
				t.Errorf("not switched off for %d s: %v", pause, err)
			}
			if got := samples(t, registry, "intents_core_rpc_available"); !slices.Equal(got, []float64{0}) {
				t.Errorf("available is %v while switched off", got)
			}
			time.Sleep(time.Millisecond)
		}
		node.Set(func(f *rpctest.Faults) { f.RetryAfter = 5 * time.Minute })
		_ = head(t, p)
		node.Set(func(f *rpctest.Faults) { *f = rpctest.Faults{} })
		time.Sleep(5*time.Minute - time.Second)
		if err := head(t, p); !errors.Is(err, rpc.ErrRate) {
			t.Errorf("Retry-After is not respected: %v", err)
		}
		time.Sleep(time.Second)
		if err := head(t, p); err != nil || !slices.Equal(samples(t, registry, "intents_core_rpc_available"), []float64{1}) {
			t.Errorf("after the pause: %v, available %v", err, samples(t, registry, "intents_core_rpc_available"))
		}
	})
}

func TestProvider_PauseOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := rpctest.NewNode(rpctest.NewChain(1))
		p := inMemory(t, rpc.Endpoint{}, nil, node).All()[0]
		if err := head(t, p); err != nil {
			t.Fatal(err)
		}
		node.Set(func(f *rpctest.Faults) { f.Status, f.Delay = 429, 100*time.Millisecond })
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() { _ = head(t, p) })
		}
		group.Wait()
		node.Set(func(f *rpctest.Faults) { *f = rpctest.Faults{} })
		time.Sleep(time.Second)
		if err := head(t, p); err != nil {
			t.Errorf("requests under way when the provider was switched off count again: %v", err)
		}
	})
}

// samples are the values of a gauge or a counter.
func samples(t *testing.T, registry *prometheus.Registry, name string) []float64 {
	t.Helper()
	return slices.Collect(maps.Values(metricstest.Of(t, registry, name)))
}

func TestProvider_Rate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := rpctest.NewNode(rpctest.NewChain(1))
		p := inMemory(t, rpc.Endpoint{RequestsPerSecond: 10}, nil, node).All()[0]
		batch := func() time.Duration {
			began := time.Now()
			var requests []rpc.Request
			for range 20 {
				requests = append(requests, rpc.BlockByNumber(rpc.Latest))
			}
			if err := p.Do(t.Context(), requests...); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		batch()
		if took := batch(); took != 2*time.Second {
			t.Errorf("20 calls took %v at 10 a second", took)
		}
		node.Set(func(f *rpctest.Faults) { f.Status = 429 })
		_ = head(t, p)
		node.Set(func(f *rpctest.Faults) { f.Status = 0 })
		time.Sleep(time.Hour)
		batch()
		if took := batch(); took < 3800*time.Millisecond || took > 4*time.Second {
			t.Errorf("20 calls took %v at half the rate", took)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := p.Do(short, rpc.BlockByNumber(rpc.Latest)); !errors.Is(err, rpc.ErrRate) {
			t.Errorf("no time before the deadline: %v", err)
		}
		for range 200 {
			_ = head(t, p)
		}
		batch()
		if took := batch(); took != 2*time.Second {
			t.Errorf("20 calls took %v after many successes", took)
		}
	})
}

func TestProvider_Timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := rpctest.NewNode(rpctest.NewChain(1))
		registry := prometheus.NewRegistry()
		p := inMemory(t, rpc.Endpoint{}, registry, node).All()[0]
		node.Set(func(f *rpctest.Faults) { f.Delay = time.Hour })
		began := time.Now()
		if err := head(t, p); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, rpc.ErrTransport) || time.Since(began) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if got := samples(t, registry, "intents_core_rpc_errors_total"); !slices.Equal(got, []float64{1}) {
			t.Errorf("errors: %v", got)
		}
	})
}

func TestProvider_LogRange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chain := rpctest.NewChain(1)
		chain.MineEmpty(3000)
		node := rpctest.NewNode(chain)
		p := inMemory(t, rpc.Endpoint{}, nil, node).All()[0]
		logs := func(span uint64) {
			_ = p.Do(t.Context(), rpc.Logs(rpc.LogFilter{From: 0, To: span - 1}))
		}
		ranges := []uint64{p.LogRange()}
		node.Set(func(f *rpctest.Faults) { f.RangeLimit = 600 })
		for range 3 {
			logs(p.LogRange())
			ranges = append(ranges, p.LogRange())
		}
		logs(1) // too few blocks to tell anything
		ranges = append(ranges, p.LogRange())
		node.Set(func(f *rpctest.Faults) { f.RangeLimit = 1 })
		for range 12 {
			logs(max(2, p.LogRange()))
		}
		ranges = append(ranges, p.LogRange())
		node.Set(func(f *rpctest.Faults) { f.RangeLimit = 0 })
		for range 200 {
			logs(p.LogRange())
		}
		ranges = append(ranges, p.LogRange())
		if diff := cmp.Diff([]uint64{2000, 1000, 500, 550, 550, 1, 10000}, ranges); diff != "" {
			t.Error(diff)
		}
	})
}
