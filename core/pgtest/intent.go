package pgtest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// InsertAccount makes an account and returns the owner of its test events.
func InsertAccount(tb testing.TB, store *rooms.Rooms) feed.Owner {
	tb.Helper()
	a, err := account.New("", uuid.NewString()+"@example.com", "hash", time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	entry, err := account.NewAuditEntry(a.ID, account.Actor{}, account.SignedUp, time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	if err := store.Identities.InsertAccount(tb.Context(), a, entry); err != nil {
		tb.Fatal(err)
	}
	return feed.Owner{AccountID: a.ID, Environment: network.Test}
}

// InsertIntent records a transfer on Sepolia, whose event is transfer.created.
func InsertIntent(tb testing.TB, store *rooms.Rooms, known *registry.Snapshot, owner feed.Owner) *transfer.Intent {
	tb.Helper()
	const alice, bob = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	request, issues := wire.DecodeTransferRequest([]byte(`{"source":{"account":"eip155:11155111:` + alice + `",
		"token":"eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","amount":"5"},"destination":{"account":"eip155:11155111:` + bob + `"}}`))
	if len(issues) > 0 {
		tb.Fatalf("%+v", issues)
	}
	by := transfer.Caller{AccountID: owner.AccountID, KeyID: uuid.New(), Environment: owner.Environment}
	intent, err := transfer.New(transfer.NewID(store.Now()), by, request, known)
	if err != nil {
		tb.Fatal(err)
	}
	if intent, err = store.Intents.InsertTransfer(tb.Context(), intent, intents.Idempotency{}); err != nil {
		tb.Fatal(err)
	}
	return intent
}
