package watch_test

import (
	"testing"
	"time"

	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/pgtest"
)

// An order that was filled in time is never said to be refundable while the block of its fill waits in a backlog.
func TestRefundable_FilledInBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	filled, open := w.bridge(), w.bridge()
	w.mine(sepolia, w.open(filled), w.open(open))
	w.deepen(sepolia, confirmations)
	w.wantConfirmed([]*transfer.Intent{filled, open})

	base := w.chains[baseSepolia]
	base.SetTime(time.Now().Add(-time.Hour)) // a chain that was last read an hour ago
	w.deepen(baseSepolia, 3*confirmations)
	base.MineEmpty(10)
	deadline := base.Mine(w.fill(filled)).Time
	base.MineEmpty(20)
	pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = $1", deadline)
	w.nodes[baseSepolia][0].Set(func(f *rpctest.Faults) { f.RangeLimit = 4 })
	for more := true; more; {
		var err error
		if more, err = w.loops[baseSepolia].Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Chains.WriteRefundableEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.deepen(baseSepolia, 2*confirmations)
	w.want(filled, "created submitted confirmed filled")
	for intent, want := range map[*transfer.Intent]bool{filled: false, open: true} {
		if written := !w.stored(intent).RefundableAt.IsZero(); written != want {
			t.Errorf("the event is written: %t, want %t", written, want)
		}
	}
}
