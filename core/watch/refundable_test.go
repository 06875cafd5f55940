package watch_test

import (
	"testing"
	"time"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// An order whose solver claimed in time is never said to be refundable while the block of the claim waits in a backlog.
func TestRefundable_ClaimedInBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	source := w.chains[sepolia]
	source.SetPeriod(time.Second)
	source.SetTime(time.Now().Add(-time.Hour)) // a chain that was last read an hour ago
	claimed, open := w.bridge(), w.bridge()
	w.mine(sepolia, w.open(claimed), w.open(open))
	w.deepen(sepolia, 3*confirmations)
	w.wantConfirmed([]*transfer.Intent{claimed, open})

	source.MineEmpty(10)
	expires := source.Mine(w.finalise(claimed)).Time
	source.MineEmpty(20)
	pgtest.Exec(t, w.store, "UPDATE transfers SET expires = $1", expires)
	w.fault(0, func(f *rpctest.Faults) { f.RangeLimit = 4 })
	for more := true; more; {
		var err error
		if more, err = w.loops[sepolia].Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Intents.WriteRefundableEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.deepen(sepolia, 2*confirmations)
	w.wantRefundable(map[*transfer.Intent]bool{claimed: false, open: true})
}

// A fill that waits in a backlog of the destination chain does not delay the refund, which the source chain decides; the order is filled once
// the fill is read.
func TestRefundable_FilledInBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.confirmedBridge()
	w.chains[baseSepolia].Mine(w.fill(intent))
	w.chains[baseSepolia].MineEmpty(2 * confirmations)
	pgtest.Exec(t, w.store, "UPDATE transfers SET expires = now() - interval '1 minute'")
	w.deepen(sepolia, 2*confirmations)
	if _, err := w.store.Intents.WriteRefundableEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRefundable(map[*transfer.Intent]bool{intent: true})
	w.tick(baseSepolia)
	w.want(intent, "created submitted confirmed confirmed filled")
	w.wantRefundable(map[*transfer.Intent]bool{intent: false})
}

// wantRefundable compares which orders are recorded as refundable.
func (w *world) wantRefundable(want map[*transfer.Intent]bool) {
	w.Helper()
	for intent, refundable := range want {
		if written := !w.stored(intent).RefundableAt.IsZero(); written != refundable {
			w.Errorf("%s is refundable: %t, want %t", w.stored(intent).Status, written, refundable)
		}
	}
}
