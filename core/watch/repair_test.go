package watch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// hide mines a transaction on a chain whose first provider leaves its events out, until the block is final.
func (w *world) hide(id caip.ChainID, txs ...rpctest.Tx) {
	w.Helper()
	w.nodes[id][0].Set(func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.mine(id, txs...)
	w.deepen(id, 3*confirmations)
	w.nodes[id][0].Set(func(f *rpctest.Faults) { f.EmptyLogs = false })
}

// What a provider leaves out for good is found by the comparison with the settlers, and counted.
func TestRepair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hidden, status string
		transactions   string
		missed         float64
	}{
		"the fill":                {"fill", "filled", "open, fill", 1},
		"the refund":              {"refund", "refunded", "open, refund", 1},
		"the fill and the claim":  {"fill finalise", "filled", "open, finalise, fill", 2},
		"the fill and the refund": {"fill refund", "filled", "open, refund, fill", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			intent := w.confirmedBridge()
			w.chains[sepolia].SetOrderStatus(intent, transfer.OrderDeposited)
			for event := range strings.FieldsSeq(c.hidden) {
				switch event {
				case "fill":
					w.hide(baseSepolia, w.fill(intent))
					w.chains[baseSepolia].SetFilled(intent, true)
				case "finalise":
					w.hide(sepolia, w.finalise(intent))
					w.chains[sepolia].SetOrderStatus(intent, transfer.OrderClaimed)
				case "refund":
					w.hide(sepolia, w.refund(intent))
					w.chains[sepolia].SetOrderStatus(intent, transfer.OrderRefunded)
				}
			}
			w.want(intent, "created submitted confirmed")
			w.due()
			for range 2 { // the first poll finds the events, the second confirms those of the other chain's loop
				w.tick(sepolia)
				w.tick(baseSepolia)
			}
			if status := w.stored(intent).Status; status != transfer.Status(c.status) {
				t.Errorf("%s, want %s", status, c.status)
			}
			if missed := w.count("intents_core_chain_repaired_events_total"); missed != c.missed {
				t.Errorf("%v events are counted, want %v", missed, c.missed)
			}
			got := pgtest.LookUp[string](t, w.store, "SELECT string_agg(role, ', ' ORDER BY seen_at, role <> 'finalise' AND role <> 'refund') FROM transactions WHERE confirmed_at IS NOT NULL")
			if got != c.transactions {
				t.Errorf("confirmed are %s, want %s", got, c.transactions)
			}
		})
	}
}

// A fill that its provider hides is found after the refund was seen too, by the destination's record alone.
func TestRepair_FillOfRefunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.confirmedBridge()
	w.hide(baseSepolia, w.fill(intent))
	w.chains[baseSepolia].SetFilled(intent, true)
	w.mine(sepolia, w.refund(intent))
	w.chains[sepolia].SetOrderStatus(intent, transfer.OrderRefunded)
	w.deepen(sepolia, 3*confirmations)
	w.want(intent, "created submitted confirmed refunded")
	w.due()
	w.tick(sepolia)
	w.tick(baseSepolia)
	w.want(intent, "created submitted confirmed refunded filled")
	if n := w.nodes[sepolia][0].Calls()["eth_call"]; n != 0 {
		t.Errorf("the input settler, which has told its part, is asked %d times", n)
	}
	if due := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE due_at IS NOT NULL"); due != 0 {
		t.Errorf("%d comparisons are due of a filled order", due)
	}
}

// An account with thousands of refunded orders does not delay the comparison of another account's order.
func TestRepair_FairBetweenAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	hostile := w.bridge()
	pgtest.Exec(t, w.store, fmt.Sprintf(`INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, log_index, confirmed_at, seen_at, due_at)
		SELECT $1, $2, '%s', sha256(n::text::bytea), 'refund', 'mined', false, 1, sha256('1'), 0, now(), now(), %s FROM generate_series(1, 3000) AS n`, sepolia, hourAgo),
		hostile.AccountID, hostile.ID)
	w.owner = uuid.New()
	strangers := w.confirmedBridge()
	w.hide(baseSepolia, w.fill(strangers))
	w.chains[baseSepolia].SetFilled(strangers, true)
	pgtest.Exec(t, w.store, "UPDATE transactions SET due_at = "+hourAgo+" WHERE account_id = $1", hostile.AccountID)
	pgtest.Exec(t, w.store, "UPDATE transactions SET due_at = now() WHERE account_id = $1", strangers.AccountID)
	w.tick(sepolia)
	w.tick(baseSepolia)
	w.want(strangers, "created submitted confirmed filled")
}

// The events of one order are asked for by its id: a block may have more of others than a provider shows at once.
func TestRepair_ManyEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	missed, other := w.confirmedBridge(), w.bridge()
	w.hide(baseSepolia, w.fill(other), w.fill(missed))
	w.chains[baseSepolia].SetFilled(missed, true)
	w.nodes[baseSepolia][0].Set(func(f *rpctest.Faults) { f.ResultLimit = 1 })
	w.due()
	w.tick(sepolia)
	w.tick(baseSepolia)
	w.want(missed, "created submitted confirmed filled")
}

// The claim of an order whose fill was not seen has the order compared at once; a claim after its fill is what is expected.
func TestRepair_ClaimSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	seen, intent := w.confirmedBridge(), w.confirmedBridge()
	w.hide(baseSepolia, w.fill(intent))
	w.mine(baseSepolia, w.fill(seen))
	w.mine(sepolia, w.finalise(seen))
	if n := w.nodes[baseSepolia][0].Calls()["eth_call"]; n != 0 {
		t.Errorf("an order whose fill was seen is compared: %d calls", n)
	}
	w.chains[baseSepolia].SetFilled(intent, true)
	w.mine(sepolia, w.finalise(intent))
	w.tick(baseSepolia)
	w.want(intent, "created submitted confirmed filled")
}

// An order that was claimed and that the destination has no fill of stays open, is counted, and is compared as often as others.
func TestRepair_ClaimedWithoutFill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.confirmedBridge()
	count := func() float64 { return w.count("intents_core_chain_claimed_unfilled_total") }
	w.chains[sepolia].SetOrderStatus(intent, transfer.OrderClaimed)
	w.mine(sepolia, w.finalise(intent))
	w.deepen(sepolia, 2*confirmations)
	counted := count()
	if counted == 0 {
		t.Error("it is not counted")
	}
	calls := w.nodes[baseSepolia][0].Calls()["eth_call"]
	w.deepen(sepolia, 2*confirmations)
	if more := w.nodes[baseSepolia][0].Calls()["eth_call"] - calls; more != 0 {
		t.Errorf("the destination is asked %d times in %d polls", more, 2*confirmations)
	}
	w.due()
	w.tick(sepolia)
	if again := count(); again != counted+1 {
		t.Errorf("counted %v times, then %v", counted, again)
	}
	w.want(intent, "created submitted confirmed")

	// The newest block has the fill: it is only not deep enough.
	settler, head := common.HexToAddress(intent.Settlement.OutputSettler), w.chains[baseSepolia].Head().Number
	w.chains[baseSepolia].SetFunction(settler, rpctest.FillRecord, func(c rpctest.Call) ([]byte, error) {
		if c.Block < head {
			return rpctest.Word(0), nil
		}
		return rpctest.Word(1), nil
	})
	w.due()
	w.tick(sepolia)
	if again := count(); again != counted+1 {
		t.Errorf("a fill that is not deep enough is counted: %v", again)
	}
	w.mine(baseSepolia, w.fill(intent))
	w.deepen(baseSepolia, 2*confirmations)
	w.want(intent, "created submitted confirmed filled")
}

// An order whose status the settler does not tell costs no other order its comparison.
func TestRepair_FailsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	broken, missed := w.bridge(), w.bridge()
	w.mine(sepolia, w.open(broken), w.open(missed))
	w.deepen(sepolia, confirmations)
	w.hide(sepolia, w.refund(missed))
	settler := common.HexToAddress(missed.Settlement.InputSettler)
	w.chains[sepolia].SetFunction(settler, rpctest.OrderStatus, func(rpctest.Call) ([]byte, error) { return nil, rpctest.Revert{} })
	w.chains[sepolia].SetOrderStatus(missed, transfer.OrderRefunded)
	w.due()
	w.tick(sepolia) // which finds the refund,
	w.tick(sepolia) // and confirms it
	w.want(missed, "created submitted confirmed refunded")
	w.want(broken, "created submitted confirmed")
}

// An order of a scheme that is no longer supported is not compared, by this poll or a later one.
func TestRepair_OtherScheme(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.confirmedBridge()
	pgtest.Exec(t, w.store, "UPDATE transfers SET order_scheme = 'erc7683-v1/OrderData'")
	w.due()
	w.tick(sepolia)
	for id, nodes := range w.nodes {
		if n := nodes[0].Calls()["eth_call"]; n != 0 {
			t.Errorf("%d calls on %s", n, id)
		}
	}
	if due := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE due_at IS NOT NULL"); due != 0 {
		t.Errorf("%d comparisons are due", due)
	}
}

// An order that nobody fills is compared with its settlers less and less often, and in the end no more, refunded or not.
func TestRepair_BacksOff(t *testing.T) {
	t.Parallel()
	for _, refunded := range []bool{false, true} {
		w := newWorld(t, 1)
		intent := w.confirmedBridge()
		if refunded {
			w.mine(sepolia, w.refund(intent))
			w.deepen(sepolia, 3*confirmations)
			w.want(intent, "created submitted confirmed refunded")
		}
		wait := func(age string) time.Duration {
			t.Helper()
			pgtest.Exec(t, w.store, "UPDATE transactions SET seen_at = now() - $1::interval", age)
			pgtest.Exec(t, w.store, "UPDATE transfers SET expires = now() - $1::interval", age)
			w.due()
			w.tick(sepolia)
			return time.Duration(pgtest.LookUp[float64](t, w.store, "SELECT coalesce(extract(epoch FROM max(due_at) - now()), 0)::float8 FROM transactions") * float64(time.Second))
		}
		for _, c := range []struct {
			age  string
			want time.Duration
		}{{"1 hour", time.Hour}, {"8 days", 24 * time.Hour}, {"31 days", 0}} {
			if got := wait(c.age); (got - c.want).Abs() > c.want/8+10*time.Minute {
				t.Errorf("refunded %t: after %s it is compared again in %s, want %s", refunded, c.age, got, c.want)
			}
		}
	}
}

// A search for an event reads a bounded number of ranges in a round and goes on in the next one, and none is begun in a backlog.
func TestRepair_Budget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.confirmedBridge()
	w.hide(baseSepolia, w.fill(intent))
	w.chains[baseSepolia].SetFilled(intent, true)
	w.chains[baseSepolia].MineEmpty(200)
	w.tick(baseSepolia)
	node := w.nodes[baseSepolia][0]
	node.Set(func(f *rpctest.Faults) { f.RangeLimit = 4 })
	pgtest.Exec(t, w.store, "UPDATE watched_chains SET read_block = head_number - 1 WHERE chain_id = '"+baseSepolia.String()+"'")
	w.due()
	before := node.Calls()["eth_getLogs"]
	w.tick(sepolia)
	if calls := node.Calls()["eth_getLogs"] - before; calls != 0 {
		t.Errorf("%d ranges are read while the chain has a backlog", calls)
	}
	pgtest.Exec(t, w.store, "UPDATE watched_chains SET read_block = head_number WHERE chain_id = '"+baseSepolia.String()+"'")
	w.due()
	rounds := 0
	for ; rounds < 20 && w.count("intents_core_chain_repaired_events_total") == 0; rounds++ {
		before := node.Calls()["eth_getLogs"]
		w.tick(sepolia)
		if calls := node.Calls()["eth_getLogs"] - before; calls > 20 {
			t.Errorf("%d ranges are read in a round", calls)
		}
	}
	if rounds < 2 || rounds == 20 {
		t.Errorf("the event is found in %d rounds", rounds)
	}
}

// Settlers are asked at the newest block: full nodes keep the states of few others.
func TestRepair_StatesPruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.confirmedBridge()
	w.hide(sepolia, w.refund(intent))
	w.chains[sepolia].SetOrderStatus(intent, transfer.OrderRefunded)
	w.fault(0, func(f *rpctest.Faults) { f.MissingState = true })
	w.due()
	w.tick(sepolia) // which finds the refund,
	w.tick(sepolia) // and confirms it
	w.want(intent, "created submitted confirmed refunded")
}
