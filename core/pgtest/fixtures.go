package pgtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/identities"
	"intents.internal/core/intents"
	"intents.internal/core/outbound"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Now has the precision of the database.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Passwords hashes at a thousandth of what a service pays, which is most of the time of tests with many passwords.
func Passwords() *account.Passwords {
	cheap := account.OWASP
	cheap.Memory, cheap.Iterations = 64, 1
	return account.NewPasswords(cheap)
}

// SignUp stores an account with this e-mail address.
func SignUp(t *testing.T, store *rooms.Rooms, email string) *account.Account {
	t.Helper()
	a, err := account.New("", email, "hash of a password", Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Identities.InsertAccount(t.Context(), a, AuditEntry(a.ID, account.SignedUp)); err != nil {
		t.Fatal(err)
	}
	return a
}

// NewKey makes a key of an account, which it does not store.
func NewKey(t *testing.T, owner uuid.UUID, request account.KeyRequest) *account.Key {
	t.Helper()
	if request.Name == "" {
		request.Name = "key"
	}
	k, _, err := account.NewKey(owner, request, Now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// AddKey stores a key with its entry in the audit log.
func AddKey(ctx context.Context, store *rooms.Rooms, k *account.Key, entry account.AuditEntry) error {
	return store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identities.Tx) error {
		if err := tx.InsertKey(ctx, tx.OperatorRights(), k); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}

// InsertKey stores a test key that never expires.
func InsertKey(t *testing.T, store *rooms.Rooms, owner uuid.UUID) *account.Key {
	t.Helper()
	return InsertKeyOf(t, store, owner, account.KeyRequest{})
}

// InsertKeyOf stores the key that a request asks for.
func InsertKeyOf(t *testing.T, store *rooms.Rooms, owner uuid.UUID, request account.KeyRequest) *account.Key {
	t.Helper()
	k := NewKey(t, owner, request)
	if err := AddKey(t.Context(), store, k, KeyEntry(k, account.KeyCreated)); err != nil {
		t.Fatal(err)
	}
	return k
}

// UpdateKey changes one of an account's keys as core does.
func UpdateKey(
	ctx context.Context, store *rooms.Rooms, accountID, keyID uuid.UUID, change func(*account.Key) error,
) (key *account.Key, err error) {
	err = store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identities.Tx) error {
		if key, err = tx.LockKey(ctx, accountID, keyID); err != nil {
			return err
		}
		if err := change(key); err != nil {
			return err
		}
		if err := tx.UpdateKey(ctx, tx.OperatorRights(), key); err != nil {
			return err
		}
		return tx.Audit(ctx, KeyEntry(key, account.KeyUpdated))
	})
	return key, err
}

// DeleteKey deletes one of an account's keys as core does.
func DeleteKey(ctx context.Context, store *rooms.Rooms, accountID, keyID uuid.UUID) error {
	return store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identities.Tx) error {
		key, err := tx.LockKey(ctx, accountID, keyID)
		if err != nil {
			return err
		}
		if err := tx.DeleteKey(ctx, tx.OperatorRights(), key, Now()); err != nil {
			return err
		}
		return tx.Audit(ctx, KeyEntry(key, account.KeyDeleted))
	})
}

// Browser is whom the audit log of these tests names.
var Browser = account.Actor{IPAddress: "203.0.113.7", UserAgent: "Browser/1.0"}

// AuditEntry is an entry about an account.
func AuditEntry(accountID uuid.UUID, action account.Action) account.AuditEntry {
	entry, err := account.NewAuditEntry(accountID, Browser, action, Now())
	if err != nil {
		panic(err) // there are no random numbers
	}
	return entry
}

// KeyEntry is an entry about a key.
func KeyEntry(k *account.Key, action account.Action) account.AuditEntry {
	return AuditEntry(k.AccountID, action).OfKey(k, "in a test")
}

// Requests on the chains of LoadRegistry, and their parts.
const (
	Alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	Bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

	MainnetUSDC = "eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
	SepoliaUSDC = "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	SepoliaWETH = "eip155:11155111:0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	BaseUSDC    = "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"

	TransferBody = `{"source":{"account":"eip155:11155111:` + Alice + `","token":"` + SepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:11155111:` + Bob + `"}}`
	SwapBody = `{"source":{"account":"eip155:11155111:` + Alice + `","token":"` + SepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:11155111:` + Bob + `","token":"` + SepoliaWETH + `","amount":"4"},"reference":"inv-42"}`
	LiveBody = `{"source":{"account":"eip155:1:` + Alice + `","token":"` + MainnetUSDC + `","amount":"5"},
		"destination":{"account":"eip155:1:` + Bob + `"}}`
	BridgeBody = `{"source":{"account":"eip155:11155111:` + Alice + `","token":"` + SepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:84532:` + Bob + `","token":"` + BaseUSDC + `","amount":"4"}}`
)

// NewIntent makes the intent of an account that a request body asks for.
func NewIntent(tb testing.TB, known *registry.Snapshot, owner uuid.UUID, body string) *transfer.Intent {
	tb.Helper()
	return NewIntentWithID(tb, known, owner, body, uuid.Must(uuid.NewV7()))
}

// NewIntentWithID is NewIntent with the intent's id.
func NewIntentWithID(tb testing.TB, known *registry.Snapshot, owner uuid.UUID, body string, id uuid.UUID) *transfer.Intent {
	tb.Helper()
	by := transfer.Caller{AccountID: owner, KeyID: uuid.New(), Environment: network.Test}
	intent, err := transfer.New(id, by, ParseRequest(tb, body), known)
	if err != nil {
		tb.Fatal(err)
	}
	return intent
}

// ParseRequest parses the body of a request, which must be valid.
func ParseRequest(tb testing.TB, body string) wire.TransferRequest {
	tb.Helper()
	request, issues := wire.DecodeTransferRequest([]byte(body))
	if len(issues) > 0 {
		tb.Fatalf("issues: %+v", issues)
	}
	return request
}

// Idempotent is the use of a key by a test key's request with this body.
func Idempotent(tb testing.TB, key, body string) intents.Idempotency {
	tb.Helper()
	return intents.Idempotency{Key: key, Environment: network.Test, Request: ParseRequest(tb, body)}
}

// InsertTransfer stores the intent that a request body asks for.
func InsertTransfer(tb testing.TB, store *rooms.Rooms, known *registry.Snapshot, owner uuid.UUID, body string) *transfer.Intent {
	tb.Helper()
	intent := NewIntent(tb, known, owner, body)
	if _, err := store.Intents.InsertTransfer(tb.Context(), intent, intents.Idempotency{}); err != nil {
		tb.Fatal(err)
	}
	return intent
}

// InsertBatch stores the intents that request bodies ask for as one batch.
func InsertBatch(tb testing.TB, store *rooms.Rooms, known *registry.Snapshot, owner uuid.UUID, key string, bodies ...string) []*transfer.Intent {
	tb.Helper()
	drafts := make([]*transfer.Intent, len(bodies))
	for n, body := range bodies {
		drafts[n] = NewIntent(tb, known, owner, body)
	}
	batch := &intents.Batch{ID: transfer.NewID(time.Now()), AccountID: owner, KeyID: drafts[0].KeyID, Environment: drafts[0].Environment, Count: len(bodies)}
	if inserted, err := store.Intents.InsertBatch(tb.Context(), batch, key, drafts); err != nil || !inserted {
		tb.Fatal(inserted, err)
	}
	return drafts
}

// Amounts compares big numbers by value.
var Amounts = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

// RefusedBy is the SQLSTATE and the constraint of a statement that Postgres refused.
func RefusedBy(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Sprint(err)
	}
	return pg.Code + " " + pg.ConstraintName
}

// Fingerprint is the SHA-256 of a text, as keys and tokens are stored.
func Fingerprint(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// Must ends the test with an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Begin starts a transaction that is rolled back after the test.
func Begin(t *testing.T, store *rooms.Rooms) *sql.Tx {
	t.Helper()
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Lock runs a statement in a transaction that stays open, as another session that has locked something.
func Lock(t *testing.T, store *rooms.Rooms, statement string, args ...any) *sql.Tx {
	t.Helper()
	tx := Begin(t, store)
	if _, err := tx.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return tx
}

// Changes reads the feed of key changes once.
func Changes(t *testing.T, store *rooms.Rooms, after string) (hashes []string, cursor string) {
	t.Helper()
	since, cursor, err := store.Identities.KeyChanges(t.Context(), []string{after}, time.Now())
	if err != nil || since[after].Expired {
		t.Fatal(since, err)
	}
	return since[after].Hashes, cursor
}

// OpenLimited opens a store whose statements may take a tenth of a second.
func OpenLimited(t *testing.T, url string) *rooms.Rooms {
	t.Helper()
	store, err := rooms.Open(url, postgres.Options{StatementTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// InsertSession stores a session of an account.
func InsertSession(t *testing.T, store *rooms.Rooms, owner uuid.UUID) *account.Session {
	t.Helper()
	session, _, err := account.NewSession(owner, "203.0.113.7", "Browser/1.0", Now())
	if err != nil {
		t.Fatal(err)
	}
	as := &account.Account{ID: owner, PasswordHash: LookUp[string](t, store, "SELECT password_hash FROM accounts WHERE id = $1", owner)}
	if err := store.Identities.InsertSession(t.Context(), session, as, AuditEntry(owner, account.SignedIn)); err != nil {
		t.Fatal(err)
	}
	return session
}

// List reads a whole list.
func List(t *testing.T, store *rooms.Rooms, owner uuid.UUID, filter intents.TransferFilter) []transfer.Summary {
	t.Helper()
	var summaries []transfer.Summary
	for summary, err := range store.Intents.Transfers(t.Context(), owner, filter) {
		if err != nil {
			t.Fatal(err)
		}
		summaries = append(summaries, summary)
	}
	return summaries
}

// Multiply makes count copies of the one intent, each a millisecond older than the one before.
func Multiply(tb testing.TB, store *rooms.Rooms, id uuid.UUID, count int) {
	tb.Helper()
	// A function in FROM is called once a row; (f(…)).* in the list of columns calls it once a column.
	Exec(tb, store, `INSERT INTO transfers SELECT made.* FROM transfers i, generate_series(1, $1) n,
		jsonb_populate_record(i, jsonb_build_object('id', (lpad(to_hex(1700000000000 - n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
		'order_id', sha256(n::text::bytea))) AS made WHERE i.id = $2`, count, id.String())
}

// InsertWebhook stores a test endpoint of an account.
func InsertWebhook(t *testing.T, store *rooms.Rooms, r *webhooks.Rules, owner *account.Account) (*webhooks.Endpoint, webhooks.Secret) {
	t.Helper()
	e, secret, err := r.New(feed.Owner{AccountID: owner.ID, Environment: network.Test}, webhooks.Draft{URL: "https://example.com"}, Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Webhooks.InsertWebhook(t.Context(), identities.OfOperator, e, AuditEntry(owner.ID, account.WebhookCreated), [32]byte{}); err != nil {
		t.Fatal(err)
	}
	return e, secret
}

// WebhookRules are rules that allow public addresses and seal secrets with these keys.
func WebhookRules(t *testing.T, current, previous []byte) *webhooks.Rules {
	t.Helper()
	sealer, err := webhooks.NewSealer(current, previous)
	if err != nil {
		t.Fatal(err)
	}
	return &webhooks.Rules{Networks: outbound.NewNetworks(nil), Sealer: sealer}
}

// NoFilter lets all events through.
var NoFilter feed.Filter

// Connections is how many a store has that is opened without options.
const Connections = 16

// As runs work in a transaction with the rights of a session on an account, whatever the role.
func As(
	ctx context.Context, store *rooms.Rooms, session *account.Session, on uuid.UUID,
	work func(context.Context, identities.Tx, identities.Rights) error,
) error {
	return store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identities.Tx) error {
		rights, err := tx.Rights(ctx, session, on, func(account.Role) error { return nil })
		if err != nil {
			return err
		}
		return work(ctx, tx, rights)
	})
}
