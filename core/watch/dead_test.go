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

// K5.23: of three providers, a dead one costs the poll that finds out a quarter of a request's time and the others nothing, whether it answers
// its verification or not. Two cost that and a request's time, and then the wait for a verification.
func TestTick_DeadProviderCost(t *testing.T) {
	t.Parallel()
	const timeout, polls, slack = 8 * time.Second, 12, 4 * time.Second
	for name, c := range map[string]struct {
		dead         []int
		verified     bool // it answers eth_chainId all the same
		first, later time.Duration
	}{
		"one":                         {dead: []int{1}, first: timeout / 4},
		"one that tells its chain id": {dead: []int{1}, verified: true, first: timeout / 4},
		"two":                         {dead: []int{1, 2}, first: timeout/4 + timeout, later: polls * time.Second / 2},
		"the preferred":               {dead: []int{0}, first: timeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			w.timeout = timeout
			w.connect()
			w.follow(sepolia)
			w.deepen(sepolia, 2)
			for _, n := range c.dead {
				w.fault(n, func(f *rpctest.Faults) {
					if f.Delay = time.Hour; c.verified {
						f.Delay, f.Delays = 0, map[string]time.Duration{"eth_getBlockByNumber": time.Hour, "eth_getLogs": time.Hour}
					}
				})
			}
			began := time.Now()
			w.mine(sepolia, w.open(w.bridge()))
			first := time.Since(began)
			w.deepen(sepolia, polls)
			if later := time.Since(began) - first; first > c.first+slack || later > c.later+slack {
				t.Errorf("the first poll took %v and %d others %v, want %v and %v", first, polls, later, c.first, c.later)
			}
		})
	}
}
