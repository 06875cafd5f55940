package rpc_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
)

func hosts(providers []*rpc.Provider) (hosts []string) {
	for _, p := range providers {
		hosts = append(hosts, p.Host())
	}
	return hosts
}

func TestChain_Providers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blocks := rpctest.NewChain(1)
		nodes := []*rpctest.Node{rpctest.NewNode(blocks), rpctest.NewNode(blocks), rpctest.NewNode(blocks)}
		chain := inMemory(t, rpc.Endpoint{}, nil, nodes...)
		all := chain.All()
		a, b, c := all[0], all[1], all[2]
		check := func(when string, want ...*rpc.Provider) {
			t.Helper()
			if diff := cmp.Diff(hosts(want), hosts(chain.Providers())); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		check("at first", a, b, c)
		if diff := cmp.Diff(hosts([]*rpc.Provider{b, c}), hosts(chain.Other(a))); diff != "" {
			t.Error(diff)
		}
		nodes[0].Set(func(f *rpctest.Faults) { f.Status = 500 })
		_ = head(t, a)
		check("a failed", b, c, a)
		nodes[1].Set(func(f *rpctest.Faults) { f.Status = 429 })
		_ = head(t, b)
		check("b is switched off", c, a, b)
		time.Sleep(2 * time.Minute)
		check("c stays after the others are well", c, a, b)
		chain.Demote(c)
		check("c lags", a, b, c)
	})
}

func TestChain_Verify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blocks := rpctest.NewChain(1)
		nodes := []*rpctest.Node{rpctest.NewNode(blocks), rpctest.NewNode(blocks)}
		chain := inMemory(t, rpc.Endpoint{}, nil, nodes...)
		wrong := chain.All()[0]
		nodes[0].Set(func(f *rpctest.Faults) { f.ChainID = 5 })
		if err := chain.Verify(t.Context()); !errors.Is(err, rpc.ErrWrongChain) {
			t.Errorf("got %v", err)
		}
		if !strings.HasSuffix(wrong.Problem(), "the node serves eip155:5, not eip155:1") || chain.All()[1].Problem() != "" {
			t.Errorf("problems: %q, %q", wrong.Problem(), chain.All()[1].Problem())
		}
		if len(chain.Providers()) != 1 {
			t.Errorf("providers: %v", chain.Providers())
		}
		nodes[0].Set(func(f *rpctest.Faults) { f.ChainID = 0 })
		before := nodes[0].Requests()
		if err := head(t, wrong); !errors.Is(err, rpc.ErrWrongChain) || chain.Verify(t.Context()) == nil || nodes[0].Requests() != before {
			t.Errorf("a provider of another chain was asked: %v", err)
		}
		time.Sleep(time.Minute)
		if err := chain.Verify(t.Context()); err != nil || len(chain.Providers()) != 2 || wrong.Problem() != "" {
			t.Errorf("after a minute: %v, %q", err, wrong.Problem())
		}
		time.Sleep(time.Hour)
		nodes[0].Set(func(f *rpctest.Faults) { f.ChainID = 7 })
		if err := head(t, wrong); !errors.Is(err, rpc.ErrWrongChain) {
			t.Errorf("after an hour: %v", err)
		}
		if err := head(t, chain.All()[1]); err != nil {
			t.Error(err)
		}
		nodes[1].Set(func(f *rpctest.Faults) { f.Down = true })
		_ = head(t, chain.All()[1])
		nodes[1].Set(func(f *rpctest.Faults) { f.Down, f.ChainID = false, 9 })
		if err := head(t, chain.All()[1]); !errors.Is(err, rpc.ErrWrongChain) || len(chain.Providers()) != 0 {
			t.Errorf("after a failure: %v", err)
		}
	})
}
