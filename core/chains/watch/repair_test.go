package watch_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/pgtest"
)

// An order whose status the settler does not tell costs no other order its comparison.
func TestRepair_FailsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	broken, missed := w.bridge(), w.bridge()
	w.mine(sepolia, w.open(broken), w.open(missed))
	w.deepen(sepolia, confirmations)
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.mine(sepolia, w.refund(missed))
	w.deepen(sepolia, 3*confirmations)
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = false })
	settler := common.HexToAddress(missed.Settlement.OriginSettler)
	w.chains[sepolia].SetFunction(settler, rpctest.NewSelector("orderStatus(bytes32)"), func(c rpctest.Call) ([]byte, error) {
		if bytes.Equal(c.Data, transfer.OrderStatusCall(broken.OrderID)) {
			return nil, rpctest.Revert{}
		}
		return rpctest.Text("REFUNDED"), nil
	})
	w.due()
	w.tick(sepolia) // which finds the refund,
	w.tick(sepolia) // and confirms it
	w.want(missed, "created submitted confirmed refunded")
	w.want(broken, "created submitted confirmed")
}

// An order that nobody fills is compared with its settlers less and less often, and in the end no more.
func TestRepair_BacksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.confirmedBridge()
	wait := func(age string) time.Duration {
		t.Helper()
		pgtest.Exec(t, w.store, "UPDATE transactions SET seen_at = now() - $1::interval", age)
		pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now() - $1::interval", age)
		w.due()
		w.tick(sepolia)
		return time.Duration(pgtest.LookUp[float64](t, w.store, "SELECT coalesce(extract(epoch FROM max(due_at) - now()), 0)::float8 FROM transactions") * float64(time.Second))
	}
	for age, want := range map[string]time.Duration{"1 hour": time.Hour, "8 days": 24 * time.Hour, "31 days": 0} {
		if got := wait(age); (got - want).Abs() > 10*time.Minute {
			t.Errorf("after %s it is compared again in %s, want %s", age, got, want)
		}
		pgtest.Exec(t, w.store, "UPDATE transactions SET due_at = now()")
	}
}
