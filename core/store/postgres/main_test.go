package postgres_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"intents.internal/core/identity/account"
	"intents.internal/core/intent/registry"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // most of these tests wait for other processes; -parallel overrides it
	pgtest.Main(m)
}

// now has the precision of the database.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// insertAccount stores an account with this e-mail address.
func insertAccount(t *testing.T, store *postgres.Store, email string) *account.Account {
	t.Helper()
	a, err := account.New("", email, "hash of a password", now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.InsertAccount(t.Context(), a, auditEntry(a.ID, account.SignedUp)); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T, owner uuid.UUID, request account.KeyRequest) *account.Key {
	t.Helper()
	if request.Name == "" {
		request.Name = "key"
	}
	k, _, err := account.NewKey(owner, request, now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func addKey(ctx context.Context, store *postgres.Store, k *account.Key, entry account.AuditEntry) error {
	return store.InTx(ctx, func(ctx context.Context, tx postgres.Tx) error {
		if err := tx.InsertKey(ctx, k); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}

// insertKey stores a test key that never expires.
func insertKey(t *testing.T, store *postgres.Store, owner uuid.UUID) *account.Key {
	t.Helper()
	k := newKey(t, owner, account.KeyRequest{})
	if err := addKey(t.Context(), store, k, keyEntry(k, account.KeyCreated)); err != nil {
		t.Fatal(err)
	}
	return k
}

// updateKey changes one of an account's keys as core does.
func updateKey(
	ctx context.Context, store *postgres.Store, accountID, keyID uuid.UUID, change func(*account.Key) error,
) (key *account.Key, err error) {
	err = store.InTx(ctx, func(ctx context.Context, tx postgres.Tx) error {
		if key, err = tx.LockKey(ctx, accountID, keyID); err != nil {
			return err
		}
		if err := change(key); err != nil {
			return err
		}
		if err := tx.UpdateKey(ctx, key); err != nil {
			return err
		}
		return tx.Audit(ctx, keyEntry(key, account.KeyUpdated))
	})
	return key, err
}

// deleteKey deletes one of an account's keys as core does.
func deleteKey(ctx context.Context, store *postgres.Store, accountID, keyID uuid.UUID) error {
	return store.InTx(ctx, func(ctx context.Context, tx postgres.Tx) error {
		key, err := tx.LockKey(ctx, accountID, keyID)
		if err != nil {
			return err
		}
		if err := tx.DeleteKey(ctx, key, now()); err != nil {
			return err
		}
		return tx.Audit(ctx, keyEntry(key, account.KeyDeleted))
	})
}

// browser is whom the audit log of these tests names.
var browser = account.Actor{IPAddress: "203.0.113.7", UserAgent: "Browser/1.0"}

// auditEntry is an entry about an account.
func auditEntry(accountID uuid.UUID, action account.Action) account.AuditEntry {
	entry, err := account.NewAuditEntry(accountID, browser, action, now())
	if err != nil {
		panic(err) // there are no random numbers
	}
	return entry
}

// keyEntry is an entry about a key.
func keyEntry(k *account.Key, action account.Action) account.AuditEntry {
	return auditEntry(k.AccountID, action).OfKey(k, "in a test")
}

// The parts of a request on the chains of pgtest.
const (
	alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

	mainnetUSDC = "eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
	sepoliaUSDC = "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	sepoliaWETH = "eip155:11155111:0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	baseUSDC    = "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"

	transferBody = `{"source":{"account":"eip155:11155111:` + alice + `","token":"` + sepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:11155111:` + bob + `"}}`
	swapBody = `{"source":{"account":"eip155:11155111:` + alice + `","token":"` + sepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:11155111:` + bob + `","token":"` + sepoliaWETH + `","amount":"4"},"reference":"inv-42"}`
	liveBody = `{"source":{"account":"eip155:1:` + alice + `","token":"` + mainnetUSDC + `","amount":"5"},
		"destination":{"account":"eip155:1:` + bob + `"}}`
	bridgeBody = `{"source":{"account":"eip155:11155111:` + alice + `","token":"` + sepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:84532:` + bob + `","token":"` + baseUSDC + `","amount":"4"}}`
)

// newIntent makes the intent of an account that a request body asks for.
func newIntent(tb testing.TB, known *registry.Snapshot, owner uuid.UUID, body string) *transfer.Intent {
	tb.Helper()
	return newIntentWithID(tb, known, owner, body, uuid.Must(uuid.NewV7()))
}

func newIntentWithID(tb testing.TB, known *registry.Snapshot, owner uuid.UUID, body string, id uuid.UUID) *transfer.Intent {
	tb.Helper()
	by := transfer.Caller{AccountID: owner, KeyID: uuid.New(), Environment: network.Test}
	intent, err := transfer.New(id, by, parseRequest(tb, body), known)
	if err != nil {
		tb.Fatal(err)
	}
	return intent
}

func parseRequest(tb testing.TB, body string) wire.TransferRequest {
	tb.Helper()
	request, issues := wire.DecodeTransferRequest([]byte(body))
	if len(issues) > 0 {
		tb.Fatalf("issues: %+v", issues)
	}
	return request
}

// idempotent is the use of a key by a test key's request with this body.
func idempotent(tb testing.TB, key, body string) postgres.Idempotency {
	tb.Helper()
	return postgres.Idempotency{Key: key, Environment: network.Test, Request: parseRequest(tb, body)}
}

func insertIntent(tb testing.TB, store *postgres.Store, known *registry.Snapshot, owner uuid.UUID, body string) *transfer.Intent {
	tb.Helper()
	intent := newIntent(tb, known, owner, body)
	if _, err := store.InsertTransfer(tb.Context(), intent, postgres.Idempotency{}); err != nil {
		tb.Fatal(err)
	}
	return intent
}

// amounts compares big numbers by value.
var amounts = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

// refusedBy is the SQLSTATE and the constraint of a statement that Postgres refused.
func refusedBy(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Sprint(err)
	}
	return pg.Code + " " + pg.ConstraintName
}

func fingerprint(text string) [32]byte { return sha256.Sum256([]byte(text)) }
