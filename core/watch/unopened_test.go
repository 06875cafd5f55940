package watch_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// expire expires what may expire, while the watcher holds its lease.
func (w *world) expire(want int) {
	w.Helper()
	pgtest.Exec(w.T, w.store, "UPDATE watched_chains SET lease_until = now() + interval '1 hour'")
	if expired, err := w.store.Intents.ExpireTransfers(w.Context()); err != nil || expired != want {
		w.Errorf("%d intents expire, %v; want %d", expired, err, want)
	}
}

// Case 4: an order that was opened before the eyes of providers that left its event out is compared with its settler before it expires.
func TestUnopened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	opened, never, sent := w.bridge(), w.bridge(), w.intent(transferOf(usdc))
	for n := range 2 {
		w.fault(n, func(f *rpctest.Faults) { f.EmptyLogs = true })
	}
	w.chains[sepolia].SetOrderStatus(opened, transfer.OrderDeposited)
	w.chains[sepolia].SetOrderStatus(never, transfer.OrderNone)
	w.chains[sepolia].Mine(w.open(opened))
	w.polls(4 * confirmations)
	w.want(opened, "created")
	w.truth(1) // the preferred one still hides it
	pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now()")
	w.expire(1)
	w.want(sent, "created expired")
	w.chains[sepolia].SetTime(time.Now().Add(time.Second))
	w.polls(3)
	w.want(opened, "created submitted confirmed")
	w.expire(1)
	w.want(never, "created expired")
}

// What one host alone says of an order neither opens it nor has it expire, unless nobody follows the chain or some minutes have passed.
func TestUnopened_OneHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent, later := w.bridge(), w.bridge()
	for _, i := range []*transfer.Intent{intent, later} {
		w.chains[sepolia].SetOrderStatus(i, transfer.OrderNone)
	}
	w.polls(2)
	w.lie(1, func(method string, result rpctest.Result) rpctest.Result {
		if method == "eth_call" {
			return hexutil.Encode(append(make([]byte, 31), byte(transfer.OrderDeposited)))
		}
		return result
	})
	pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now() + CASE id WHEN $1 THEN interval '0' ELSE interval '1 ms' END", intent.ID)
	w.chains[sepolia].SetTime(time.Now().Add(time.Second))
	w.polls(3)
	w.expire(0)
	w.truth(1)
	w.polls(1)
	w.expire(2)
	pgtest.Exec(t, w.store, "UPDATE watched_chains SET unopened_until = now() - interval '1 hour'")
	for _, end := range []string{"deadline = now() - interval '6 minutes'", "deadline = now()"} {
		intent := w.bridge()
		pgtest.Exec(t, w.store, "UPDATE transfers SET "+end+" WHERE id = $1", intent.ID)
		if end == "deadline = now()" {
			w.expire(0)
			pgtest.Exec(t, w.store, "UPDATE watched_chains SET lease_until = now()")
			if expired, err := w.store.Intents.ExpireTransfers(t.Context()); err != nil || expired != 1 {
				t.Errorf("%d intents of a chain that nobody follows expire, %v", expired, err)
			}
			continue
		}
		w.expire(1)
	}
}

// K1.4: an order is compared with its settler also where its client has reported an attempt that failed, was dropped or is not mined, or has
// cancelled the order: somebody may have opened it all the same. Those that are not opened stay as they are.
func TestUnopened_ReportedAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	failed, lost, unopened, seen := w.bridge(), w.bridge(), w.bridge(), w.openBridge()
	all := []*transfer.Intent{failed, lost, unopened}
	for _, i := range all {
		reverted := w.tx(i.Settlement.InputSettler)
		reverted.Reverted = i != lost
		w.report(i, w.hash(reverted))
		if i != lost {
			w.chains[sepolia].Mine(reverted)
		}
	}
	w.polls(2 * confirmations)
	w.due()
	w.polls(2 * confirmations)
	w.want(failed, "created submitted failed")
	cancelled, withdrawn := w.bridge(), w.bridge()
	for _, i := range []*transfer.Intent{cancelled, withdrawn} {
		_, err := w.store.Intents.Transition(t.Context(), i.AccountID, i.ID, transfer.Command{Trigger: transfer.Cancel})
		pgtest.Must(t, err)
	}
	for n := range 2 {
		w.fault(n, func(f *rpctest.Faults) { f.EmptyLogs = true })
	}
	w.chains[sepolia].Mine(w.open(failed), w.open(lost), w.open(cancelled))
	w.polls(4 * confirmations)
	w.want(failed, "created submitted failed")
	w.want(lost, "created submitted")
	w.truth(1) // the preferred one still hides it
	for i, status := range map[*transfer.Intent]transfer.OrderStatus{
		failed: transfer.OrderDeposited, lost: transfer.OrderDeposited, unopened: transfer.OrderNone, seen: transfer.OrderDeposited,
		cancelled: transfer.OrderDeposited, withdrawn: transfer.OrderNone,
	} {
		w.chains[sepolia].SetOrderStatus(i, status)
	}
	pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now()")
	w.chains[sepolia].SetTime(time.Now().Add(time.Second))
	w.polls(3)
	w.want(failed, "created submitted failed submitted confirmed")
	w.want(lost, "created submitted submitted confirmed")
	w.want(unopened, "created submitted failed")
	w.want(cancelled, "created cancelled submitted confirmed")
	w.want(withdrawn, "created cancelled")
	w.want(seen, "created submitted confirmed")
}
