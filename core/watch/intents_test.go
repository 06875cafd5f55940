package watch_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

const (
	usdc     = `"token":"eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","amount":"5"`
	native   = `"token":"eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE","amount":"5"`
	baseUSDC = `"token":"eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e","amount":"4"`
)

func transferOf(asset string) string {
	return `{"source":{"account":"eip155:11155111:` + alice + `",` + asset + `},"destination":{"account":"eip155:11155111:` + bob + `"}}`
}

// intent records the intent of a request.
func (w *world) intent(body string) *transfer.Intent {
	w.Helper()
	request, issues := wire.DecodeTransferRequest([]byte(body))
	if len(issues) > 0 {
		w.Fatalf("%+v", issues)
	}
	by := transfer.Caller{AccountID: w.owner, KeyID: uuid.New(), Environment: network.Test}
	intent, err := transfer.New(transfer.NewID(w.store.Now()), by, request, w.live.Current())
	if err != nil {
		w.Fatal(err)
	}
	if intent, err = w.store.Intents.InsertTransfer(w.Context(), intent, intents.Idempotency{}); err != nil {
		w.Fatal(err)
	}
	w.active(intent)
	return intent
}

// active records that the intent may touch its chains, as a POST does.
func (w *world) active(intent *transfer.Intent) {
	w.Helper()
	for _, id := range []caip.ChainID{intent.Source.Account.Chain, intent.Destination.Account.Chain} {
		if err := w.store.Intents.KeepActive(w.Context(), id, time.Now().Add(time.Hour)); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) bridge() *transfer.Intent {
	w.Helper()
	return w.intent(`{"source":{"account":"eip155:11155111:` + alice + `",` + usdc + `},"destination":{"account":"eip155:84532:` + bob + `",` + baseUSDC + `}}`)
}

// openBridge records a bridge whose order the next block opens.
func (w *world) openBridge() *transfer.Intent {
	w.Helper()
	intent := w.bridge()
	w.mine(sepolia, w.open(intent))
	return intent
}

func (w *world) confirmedBridge() *transfer.Intent {
	w.Helper()
	intent := w.openBridge()
	w.deepen(sepolia, confirmations)
	return intent
}

// reported records a transfer of an asset whose transaction the client reports.
func (w *world) reported(asset string) (*transfer.Intent, rpctest.Tx) {
	w.Helper()
	intent := w.intent(transferOf(asset))
	tx := w.pay(intent)
	w.report(intent, w.hash(tx))
	return intent, tx
}

// stored is the intent as it is recorded now.
func (w *world) stored(intent *transfer.Intent) *transfer.Intent {
	w.Helper()
	stored, err := w.store.Intents.Transfer(w.Context(), intent.AccountID, intent.ID)
	if err != nil {
		w.Fatal(err)
	}
	return stored
}

// report reports a transaction as a client does.
func (w *world) report(intent *transfer.Intent, hash common.Hash) {
	w.Helper()
	if _, err := w.store.Intents.ReportTransaction(w.Context(), access.OfOperator, intent.AccountID, []uuid.UUID{intent.ID}, hash); err != nil {
		w.Fatal(err)
	}
}

// due has all attempts looked up, and all unconfirmed transactions compared, by the next poll.
func (w *world) due() {
	w.Helper()
	pgtest.Exec(w.T, w.store, "UPDATE transactions SET due_at = now() WHERE due_at IS NOT NULL")
	pgtest.Exec(w.T, w.store, "UPDATE transactions SET compare_at = NULL")
}

// tx is a transaction of alice's with the next nonce.
func (w *world) tx(to string, logs ...rpctest.Log) rpctest.Tx {
	w.nonce++
	address := common.HexToAddress(to)
	return rpctest.Tx{From: common.HexToAddress(alice), Nonce: w.nonce, To: &address, Input: []byte{byte(w.nonce)}, Logs: logs}
}

// pay is the transaction of a transfer.
func (w *world) pay(intent *transfer.Intent) rpctest.Tx {
	if intent.Source.Token.Address == "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE" {
		tx := w.tx(intent.Destination.Account.Address)
		tx.Value = intent.Source.Amount
		return tx
	}
	return w.tx(intent.Source.Token.Address, payment(intent))
}

// payment is the ERC-20 event of a transfer.
func payment(intent *transfer.Intent) rpctest.Log {
	return rpctest.Paid(intent, intent.Destination.Account.Address)
}

// open is the transaction that opens the order of an intent.
func (w *world) open(i *transfer.Intent) rpctest.Tx {
	return w.tx(i.Settlement.InputSettler, rpctest.Deposited(i), rpctest.Opened(i))
}

// fill pays the recipient, finalise the solver and refund the sender.
func (w *world) fill(i *transfer.Intent) rpctest.Tx     { return w.answer(rpctest.Filled(i)) }
func (w *world) finalise(i *transfer.Intent) rpctest.Tx { return w.answer(rpctest.Finalised(i)) }
func (w *world) refund(i *transfer.Intent) rpctest.Tx   { return w.answer(rpctest.Refunded(i)) }

// answer is a solver's transaction in which a settler emits an event.
func (w *world) answer(log rpctest.Log) rpctest.Tx {
	tx := w.tx(log.Address.Hex(), log)
	tx.From = rpctest.Solver
	return tx
}

// want compares the way that an intent went, as "created submitted …".
func (w *world) want(intent *transfer.Intent, way string) {
	w.Helper()
	events, err := w.store.Intents.Events(w.Context(), intent.AccountID, intent.ID)
	if err != nil {
		w.Fatal(err)
	}
	var steps []string
	for n, e := range events {
		steps = append(steps, string(e.To))
		if n > 0 && e.From != events[n-1].To {
			w.Errorf("event %d leads from %s after %s", n, e.From, events[n-1].To)
		}
		if observed := e.To == transfer.Confirmed || e.To == transfer.Filled || e.To == transfer.Refunded || e.To == transfer.Failed; observed && e.From != e.To && e.Observed == nil {
			w.Errorf("event %d to %s names no transaction", n, e.To) // I2
		}
	}
	if got := strings.Join(steps, " "); got != way {
		w.Errorf("went %q, want %q", got, way)
	}
	if got := string(w.stored(intent).Status); !strings.HasSuffix(way, got) {
		w.Errorf("status %s after %q", got, way)
	}
}

// wantTransactions compares the transactions of an intent, as "role state" with * where they are confirmed, oldest first.
func (w *world) wantTransactions(intent *transfer.Intent, want ...string) {
	w.Helper()
	transactions, err := w.store.Intents.Transactions(w.Context(), intent.AccountID, intent.ID)
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, t := range transactions {
		text := fmt.Sprintf("%s %s", t.Role, t.State)
		if t.Confirmed {
			text += "*"
		}
		got = append(got, text)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.Errorf("transactions %q, want %q", got, want)
	}
}

// wantReason wants that the intent and the event of its failure have the failure, with what was found.
func (w *world) wantReason(intent *transfer.Intent, failure transfer.Failure, found string) {
	w.Helper()
	transactions, err := w.store.Intents.Transactions(w.Context(), intent.AccountID, intent.ID)
	if err != nil {
		w.Fatal(err)
	}
	stored := w.stored(intent)
	if r := stored.FailureReason(transfer.History{Transactions: transactions}); stored.Failure != string(failure) || r == nil || r.Found != found {
		w.Errorf("failure %q, %+v, want %q with %s", stored.Failure, r, failure, found)
	}
	events, err := w.store.Intents.Events(w.Context(), intent.AccountID, intent.ID)
	if err != nil {
		w.Fatal(err)
	}
	if last := events[len(events)-1]; last.Failure != failure || last.Observed.Found != found {
		w.Errorf("the last event is %+v of %+v", last, last.Observed)
	}
}

// hash is the hash of a transaction of Sepolia.
func (w *world) hash(tx rpctest.Tx) common.Hash { return w.chains[sepolia].Hash(tx) }
