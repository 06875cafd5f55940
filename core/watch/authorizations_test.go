package watch_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

var (
	sepoliaUSDC        = common.HexToAddress("0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238")
	authorizationState = rpctest.NewSelector("authorizationState(address,bytes32)")
)

// signed is a transfer that its user has signed.
func (w *world) signed() *transfer.Intent {
	w.Helper()
	intent := w.intent(`{"signing":"erc3009",` + transferOf(usdc)[1:])
	_, err := w.store.Intents.SaveSignature(w.Context(), access.OfKey(w.owner), intent.AccountID, intent.ID, make([]byte, 65),
		func(*transfer.Intent, time.Time) error { return nil })
	if err != nil {
		w.Fatal(err)
	}
	return intent
}

// ended is the token's event that an authorization has ended.
func ended(intent *transfer.Intent, event string) rpctest.Log {
	return rpctest.Log{Address: sepoliaUSDC, Topics: []common.Hash{
		crypto.Keccak256Hash([]byte(event + "(address,bytes32)")), common.BytesToHash(common.HexToAddress(intent.Source.Account.Address).Bytes()), intent.OrderID,
	}}
}

// states has the token say which authorizations have ended.
func (w *world) states(over ...*transfer.Intent) {
	w.chains[sepolia].SetFunction(sepoliaUSDC, authorizationState, func(c rpctest.Call) ([]byte, error) {
		for _, intent := range over {
			if common.Hash(c.Data[len(c.Data)-32:]) == intent.OrderID {
				return rpctest.Word(1), nil
			}
		}
		return rpctest.Word(0), nil
	})
}

// A signed transfer that anybody sent and nobody reported is found by its token; a cancelled one moves nothing.
func TestAuthorizations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	sent, cancelled, waiting := w.signed(), w.signed(), w.signed()
	w.states(sent, cancelled)
	w.chains[sepolia].Mine(w.tx(sepoliaUSDC.Hex(), ended(sent, "AuthorizationUsed"), payment(sent)))
	w.chains[sepolia].Mine(w.tx(sepoliaUSDC.Hex(), ended(cancelled, "AuthorizationCanceled")))
	w.polls(confirmations)
	w.loops[sepolia].DueAuthorizations()
	w.polls(2 * confirmations)
	w.want(sent, "created submitted confirmed")
	w.want(cancelled, "created")
	w.want(waiting, "created")
	if signature, err := w.store.Intents.Signature(t.Context(), sent.AccountID, sent.ID); err != nil || signature != nil {
		t.Errorf("the signature of a confirmed transfer: %x, %v", signature, err)
	}

	// The next round is a minute later.
	w.states(sent, cancelled, waiting)
	w.chains[sepolia].Mine(w.tx(sepoliaUSDC.Hex(), ended(waiting, "AuthorizationUsed"), payment(waiting)))
	w.polls(confirmations)
	w.want(waiting, "created")
	w.loops[sepolia].DueAuthorizations()
	w.polls(2 * confirmations)
	w.want(waiting, "created submitted confirmed")
}

// What a token says is no payment: another's authorization, or one whose payment does not stand in the receipt.
func TestAuthorizations_Reported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	first, second, unpaid, plain := w.signed(), w.signed(), w.signed(), w.signed()
	w.states()
	both := w.tx(sepoliaUSDC.Hex(), ended(second, "AuthorizationUsed"), payment(second), ended(first, "AuthorizationUsed"), payment(first))
	of := w.tx(sepoliaUSDC.Hex(), ended(unpaid, "AuthorizationUsed"))
	sent := w.pay(plain)
	for intent, tx := range map[*transfer.Intent]rpctest.Tx{first: both, second: both, unpaid: of, plain: sent} {
		w.report(intent, w.hash(tx))
	}
	w.chains[sepolia].Mine(both, of, sent)
	w.polls(2 * confirmations)
	w.want(first, "created submitted confirmed")
	w.want(second, "created submitted confirmed")
	w.want(unpaid, "created submitted failed")
	w.want(plain, "created submitted failed")
	indexes := map[uuid.UUID]int64{}
	for _, intent := range []*transfer.Intent{first, second} {
		transactions, err := w.store.Intents.Transactions(t.Context(), intent.AccountID, intent.ID)
		if err != nil || len(transactions) != 1 {
			t.Fatal(transactions, err)
		}
		indexes[intent.ID] = transactions[0].LogIndex
	}
	if indexes[second.ID] != 1 || indexes[first.ID] != 3 {
		t.Errorf("the payments are the logs %v, and the second intent's authorization is the first", indexes)
	}
}

// A provider that hides what was used hides it for a round: the next one asks another, and looks at all of them.
func TestAuthorizations_Hidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	sent := w.signed()
	w.states(sent)
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.chains[sepolia].Mine(w.tx(sepoliaUSDC.Hex(), ended(sent, "AuthorizationUsed"), payment(sent)))
	for range 3 {
		w.loops[sepolia].DueAuthorizations()
		w.polls(confirmations)
	}
	w.want(sent, "created submitted confirmed")
}
