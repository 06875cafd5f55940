package watch_test

import (
	"errors"
	"fmt"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/watch"
)

// While the other provider does not answer, one alone neither makes a reorganization nor stops the chain.
func TestHead_OthersSilent(t *testing.T) {
	t.Parallel()
	for name, depth := range map[string]int{"a reorganization": 2, "a final block": 3*confirmations + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.openBridge()
			w.deepen(sepolia, depth-1)
			before := w.stored(intent).Status
			fork := w.chains[sepolia].Fork(w.chains[sepolia].Head().Number - uint64(depth))
			fork.MineEmpty(depth + 1)
			w.nodes[sepolia][0].Follow(fork)
			w.fault(1, func(f *rpctest.Faults) { f.Status = 429 })
			for range 3 {
				if _, err := w.loops[sepolia].Tick(t.Context()); !errors.Is(err, watch.ErrUnanswered) {
					t.Errorf("%v", err)
				}
			}
			if depth > 2*confirmations { // a chain is never stopped by one provider alone
				w.loops[sepolia].SetOthersDown()
				_, _ = w.loops[sepolia].Tick(t.Context())
			}
			progress, err := w.store.Watched.Progress(t.Context(), sepolia)
			if after := w.stored(intent).Status; err != nil || progress.Stopped != "" || after != before {
				t.Errorf("stopped %q, %s after %s, %v", progress.Stopped, after, before, err)
			}
			if depth == 2 { // a minute later the provider that is left is believed
				w.loops[sepolia].SetOthersDown()
				w.tick(sepolia)
				w.want(intent, "created submitted created")
			}
		})
	}
}

// A head that is far ahead of the others' is not believed, so that they do not lag for ever.
func TestHead_Jump(t *testing.T) {
	t.Parallel()
	for _, providers := range []int{2, 3} {
		t.Run(fmt.Sprint(providers, " providers"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, providers)
			intent := w.bridge()
			fork := w.chains[sepolia].Fork(w.chains[sepolia].Head().Number)
			fork.MineEmpty(5000)
			w.nodes[sepolia][0].Follow(fork)
			w.mine(sepolia, w.open(intent))
			w.nodes[sepolia][0].Follow(w.chains[sepolia])
			w.deepen(sepolia, confirmations)
			w.want(intent, "created submitted confirmed")
			if w.count("intents_core_chain_disagreements_total") == 0 {
				t.Error("the disagreement is not counted")
			}
		})
	}
}

// No provider has the newest block that one of them showed: the chain is followed from the newest block that is on it.
func TestHead_StepsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	intent := w.openBridge()
	pgtest.Exec(t, w.store, "UPDATE watched_chains SET head_number = 5000, read_block = 5000 WHERE chain_id = 'eip155:11155111'")
	pgtest.Exec(t, w.store, "INSERT INTO chain_anchors (chain_id, number, hash) VALUES ('eip155:11155111', 5000, sha256('lie'))")
	w.chains[sepolia].MineEmpty(1)
	w.fault(2, func(f *rpctest.Faults) { f.Down = true })
	w.tick(sepolia)
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed")
	if progress, err := w.store.Watched.Progress(t.Context(), sepolia); err != nil || progress.Head != w.chains[sepolia].Head().Number {
		t.Errorf("%+v, %v", progress, err)
	}
}
