package watch_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// The script of TestLiar: -liar.polls=1000 is the whole one, and -liar.seed repeats one that failed.
var (
	liarPolls = flag.Int("liar.polls", 60, "polls of the chain that a liar serves")
	liarSeed  = flag.Uint64("liar.seed", 0, "seed of the script, 0 for a new one")
)

// With two honest providers of three and one that lies at random in any field, the intents of a random script end where they end without a
// liar: the chain is not stopped, and no poll is blocked for long. One of the honest ones may be slow at random too.
func TestLiar(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]bool{"a liar": false, "a liar and a slow one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := *liarSeed
			if seed == 0 {
				seed = uint64(time.Now().UnixNano())
			}
			t.Logf("-liar.seed=%d -liar.polls=%d", seed, *liarPolls)
			script := newScript(rand.New(rand.NewPCG(seed, 1)), *liarPolls)
			honest, lied := newWorld(t, 3), newWorld(t, 3)
			random := rand.New(&lockedSource{Source: rand.NewPCG(seed, 2)})
			liar := random.IntN(2) // the two that take turns as the preferred one
			lied.lie(liar, lies(random))
			if slow {
				lied.fault(2-liar, func(f *rpctest.Faults) { f.Silent = func(string) bool { return random.IntN(10) == 0 } })
			}
			want, got := honest.play(script), lied.play(script)
			if diff := differences(want, got); diff != "" {
				t.Errorf("the statuses without a liar and with one:\n%s", diff)
			}
			progress, err := lied.store.Watched.Progress(t.Context(), sepolia)
			if err != nil || progress.Stopped != "" || lied.chains[sepolia].Head().Number-progress.Cursor > 4*confirmations {
				t.Errorf("progress %+v at block %d, %v", progress, lied.chains[sepolia].Head().Number, err)
			}
		})
	}
}

// lockedSource is for calls of nodes, which are made at the same time.
type lockedSource struct {
	mu sync.Mutex
	rand.Source
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Source.Uint64()
}

func differences(want, got []string) string {
	var lines []string
	for n := range want {
		if want[n] != got[n] {
			lines = append(lines, fmt.Sprintf("%d: %s, %s", n, want[n], got[n]))
		}
	}
	return strings.Join(lines, "\n")
}

// act is what happens before a poll.
type act int

const (
	nothing act = iota
	openOrder
	reportedOpening
	pay
	revertedPayment
	paidLater
	fillOldest
	refundOldest
	reorganize
	acts
)

func newScript(random *rand.Rand, polls int) []act {
	script := make([]act, polls)
	for n := range script {
		script[n] = act(random.IntN(int(acts)))
	}
	return script
}

// play plays the script and returns how each intent has ended.
func (w *world) play(script []act) (ended []string) {
	w.Helper()
	var intents, open []*transfer.Intent
	var later, last []rpctest.Tx
	failed := 0
	poll := func() {
		w.loops[sepolia].Demote()
		if _, err := w.loops[sepolia].Tick(w.Context()); err != nil {
			if failed++; failed > 20 {
				w.Fatalf("20 polls in a row have failed: %v", err)
			}
			return
		}
		failed = 0
	}
	created := func(intent *transfer.Intent) *transfer.Intent {
		intents = append(intents, intent)
		return intent
	}
	for _, a := range script {
		var block []rpctest.Tx
		block, later = later, nil
		switch a {
		case openOrder, reportedOpening:
			intent := created(w.bridge())
			block, open = append(block, w.open(intent)), append(open, intent)
			if a == reportedOpening {
				w.report(intent, w.hash(block[len(block)-1]))
			}
		case pay, revertedPayment, paidLater:
			intent := created(w.intent(transferOf(usdc)))
			tx := w.pay(intent)
			tx.Reverted = a == revertedPayment
			w.report(intent, w.hash(tx))
			if a == paidLater {
				w.chains[sepolia].Submit(tx)
				later = append(later, tx)
			} else {
				block = append(block, tx)
			}
		case fillOldest:
			if len(open) > 0 {
				w.mine(baseSepolia, w.fill(open[0]))
				open = open[1:]
			}
		case refundOldest:
			if len(open) > 0 {
				block, open = append(block, w.refund(open[0])), open[1:]
			}
		case reorganize:
			w.chains[sepolia].Reorg(1, last)
		case nothing, acts:
		}
		w.chains[sepolia].SetTime(time.Now()) // a block that is much older than an intent does not carry it
		w.chains[sepolia].Mine(block...)
		last = block
		poll()
	}
	w.chains[sepolia].Mine(later...)
	for range 4 * confirmations {
		w.chains[sepolia].MineEmpty(1)
		w.due()
		poll()
		w.mine(baseSepolia)
	}
	for _, intent := range intents {
		ended = append(ended, fmt.Sprint(intent.Type, " ", w.stored(intent).Status, " ", w.stored(intent).Failure))
	}
	return ended
}

// lies changes some results: in what decides about intents, or in any one place.
func lies(random *rand.Rand) rpctest.Lie {
	return func(method string, result rpctest.Result) rpctest.Result {
		object, _ := result.(map[string]any)
		kind := random.IntN(30)
		switch {
		case kind > 4:
		case kind == 0:
			return lieSomewhere(random, result)
		case method == "eth_getLogs":
			return []any{}
		case kind == 1, object == nil:
			return nil
		case method == "eth_getTransactionReceipt" && kind == 2:
			object["logs"] = []any{}
		case method == "eth_getTransactionReceipt":
			object["logs"], object["status"] = []any{}, fmt.Sprintf("0x%d", random.IntN(2))
		case method == "eth_getBlockByNumber" && kind == 2:
			object["timestamp"] = "0x60000000"
		case method == "eth_getTransactionByHash":
			object["nonce"] = "0x0"
		}
		return result
	}
}

// lieSomewhere changes one of the places in a result.
func lieSomewhere(random *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		var members []string
		for name := range v {
			members = append(members, name)
		}
		slices.Sort(members)
		name := members[random.IntN(len(members))]
		v[name] = lieSomewhere(random, v[name])
		return v
	case []any:
		if len(v) == 0 {
			return v
		}
		n := random.IntN(len(v))
		switch random.IntN(4) {
		case 0:
			return slices.Delete(v, n, n+1)
		case 1:
			return append(v, v[n])
		}
		v[n] = lieSomewhere(random, v[n])
		return v
	case string:
		number, err := hexutil.DecodeUint64(v)
		switch {
		case len(v) == 2+2*common.HashLength:
			return common.BigToHash(common.Big32).Hex()[:64] + fmt.Sprintf("%02x", random.IntN(256))
		case err == nil && random.IntN(4) == 0:
			return hexutil.EncodeUint64(1 << 40)
		case err == nil:
			return hexutil.EncodeUint64(max(number, 3) + uint64(random.IntN(6)) - 3)
		}
		return v
	case bool:
		return !v
	default:
		return value
	}
}
