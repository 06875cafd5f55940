package watch_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/core/watch"
)

// confirmedAlong confirms bridges and reported transfers in every fifth block of a long chain.
func (w *world) confirmedAlong() (intents []*transfer.Intent) {
	w.Helper()
	for n := range 6 {
		var tx rpctest.Tx
		if n%2 == 0 {
			intents = append(intents, w.bridge())
			tx = w.open(intents[n])
		} else {
			intents = append(intents, w.intent(transferOf(usdc)))
			tx = w.pay(intents[n])
			w.report(intents[n], w.hash(tx))
		}
		w.mine(sepolia, tx)
		w.chains[sepolia].MineEmpty(4)
	}
	w.chains[sepolia].MineEmpty(2 * confirmations)
	w.tick(sepolia)
	w.wantConfirmed(intents)
	return intents
}

func (w *world) wantConfirmed(intents []*transfer.Intent) {
	w.Helper()
	for _, intent := range intents {
		w.want(intent, "created submitted confirmed")
	}
}

func (w *world) resume(from uint64) {
	w.Helper()
	if err := w.store.Watched.Resume(w.Context(), sepolia, from); err != nil {
		w.Fatal(err)
	}
	w.follow(sepolia)
}

// A resumed chain is read range by range, and no status is taken back because its block is not read yet.
func TestResume_KeepsStatuses(t *testing.T) {
	t.Parallel()
	for _, providers := range []int{1, 2} {
		t.Run(fmt.Sprint(providers, " providers"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, providers)
			intents := w.confirmedAlong()
			for _, node := range w.nodes[sepolia] {
				node.Set(func(f *rpctest.Faults) { f.RangeLimit = 4 })
			}
			w.resume(15)
			for more, polls := true, 0; more; polls++ {
				var err error
				if more, err = w.loops[sepolia].Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.wantConfirmed(intents)
				if more && polls > 50 {
					t.Fatal("the backlog does not end")
				}
			}
		})
	}
}

// What a reorganization took away goes back when its block is read, however many polls after the fork, and nothing else does.
func TestResume_TakesBackWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intents := w.confirmedAlong()
	for _, node := range w.nodes[sepolia] {
		node.Set(func(f *rpctest.Faults) { f.RangeLimit = 4 })
	}
	depth := 2*confirmations + 10 // the last two transactions
	w.chains[sepolia].Reorg(depth, make([][]rpctest.Tx, depth+1)...)
	w.resume(15)
	w.tick(sepolia)
	w.wantConfirmed(intents[:4])
	w.want(intents[4], "created submitted confirmed created")
	w.want(intents[5], "created submitted confirmed submitted")
}

// A provider without old events takes no status away after a resume.
func TestResume_EmptyLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intents := w.confirmedAlong()
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.resume(15)
	if _, err := w.loops[sepolia].Tick(t.Context()); !errors.Is(err, watch.ErrMissingLogs) {
		t.Error(err)
	}
	w.wantConfirmed(intents)
}

// The changes of a poll are written in bounded batches, those of one intent together.
func TestBatches(t *testing.T) {
	t.Parallel()
	var seen, gone []intents.Observation
	for range 700 {
		o := intents.Observation{AccountID: uuid.New(), TransferID: uuid.New()}
		seen, gone = append(seen, o), append(gone, o)
	}
	writes := watch.Batches(seen, gone)
	batchOf := map[uuid.UUID]int{}
	total := 0
	for n, w := range writes {
		if size := len(w.Seen) + len(w.Gone); size > 500 {
			t.Errorf("batch %d has %d transactions", n, size)
		}
		for _, o := range append(w.Seen, w.Gone...) {
			if before, ok := batchOf[o.TransferID]; ok && before != n {
				t.Errorf("an intent is in the batches %d and %d", before, n)
			}
			batchOf[o.TransferID] = n
			total++
		}
	}
	if total != 1400 {
		t.Errorf("%d of 1400 are written", total)
	}
	if empty := watch.Batches(nil, nil); len(empty) != 1 {
		t.Errorf("%d batches of nothing: the cursor is not written", len(empty))
	}
}
