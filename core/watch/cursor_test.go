package watch_test

import (
	"fmt"
	"testing"
)

// The cursor follows the depth, also where blocks come in bursts and no poll has seen those that are deep as heads.
func TestCursor_Bursts(t *testing.T) {
	t.Parallel()
	for _, providers := range []int{1, 2} {
		t.Run(fmt.Sprint(providers, " providers"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, providers)
			for range 3 {
				w.chains[sepolia].MineEmpty(50)
				w.tick(sepolia)
				w.tick(sepolia)
				progress, err := w.store.Watched.Progress(t.Context(), sepolia)
				if head := w.chains[sepolia].Head().Number; err != nil || progress.Cursor != head+1-confirmations {
					t.Errorf("the cursor is at block %d of %d, %v", progress.Cursor, head, err)
				}
			}
		})
	}
}

// A provider that hides an event for two polls and leaves its place to another one does not have the cursor pass it: who takes over reads
// the whole window.
func TestCursor_ReaderChanges(t *testing.T) {
	t.Parallel()
	for polls := range 2 * confirmations {
		w := newWorld(t, 2)
		intent := w.bridge()
		first := w.loops[sepolia].Hosts()[0]
		w.lie(0, func(method string, result any) any {
			if method == "eth_getLogs" {
				return []any{}
			}
			return result
		})
		w.chains[sepolia].Mine(w.open(intent))
		for n := range 3 * confirmations {
			if n == polls {
				w.loops[sepolia].Demote()
			}
			w.polls(1)
		}
		if second := w.loops[sepolia].Hosts()[0]; first == second {
			t.Errorf("%s is still preferred", second)
		}
		w.want(intent, "created submitted confirmed")
	}
}
