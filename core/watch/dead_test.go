package watch_test

import (
	"fmt"
	"testing"
	"time"

	"intents.internal/core/rpc/rpctest"
)

// A provider that does not answer costs one timeout, and not one a poll; once it answers it is a second opinion again.
func TestTick_DeadProvider(t *testing.T) {
	t.Parallel()
	for _, dead := range []int{1, 2} {
		t.Run(fmt.Sprint("provider ", dead), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			w.deepen(sepolia, 2)
			w.fault(dead, func(f *rpctest.Faults) { f.Delay = time.Hour })
			w.deepen(sepolia, 1)
			began := time.Now()
			const polls = 6
			intent := w.bridge()
			w.mine(sepolia, w.open(intent))
			w.deepen(sepolia, polls-1)
			if took := time.Since(began); took > 2*time.Second+polls*time.Second {
				t.Errorf("%d polls took %v with a timeout of 2 s", polls, took)
			}
			w.want(intent, "created submitted confirmed")
			for n := range w.nodes[sepolia] {
				w.fault(n, func(f *rpctest.Faults) { f.Delay, f.Down = 0, n != 0 && n != dead })
			}
			again := w.bridge()
			w.mine(sepolia, w.open(again))
			w.deepen(sepolia, 2*confirmations)
			w.want(again, "created submitted confirmed")
		})
	}
}
