package pgtest

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// Now has the precision of the database.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Must ends the test with an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Passwords hashes at a thousandth of what a service pays, which is most of the time of tests with many passwords.
func Passwords() *account.Passwords {
	cheap := account.OWASP
	cheap.Memory, cheap.Iterations = 64, 1
	return account.NewPasswords(cheap)
}

// SignUp stores an account with this e-mail address.
func SignUp(tb testing.TB, store *rooms.Rooms, email string) *account.Account {
	tb.Helper()
	a, err := account.New("", email, "hash of a password", Now())
	if err != nil {
		tb.Fatal(err)
	}
	if err := store.Identities.InsertAccount(tb.Context(), a, AuditEntry(a.ID, account.SignedUp)); err != nil {
		tb.Fatal(err)
	}
	return a
}

// NewOwner stores an account and returns the owner of its test events.
func NewOwner(tb testing.TB, store *rooms.Rooms) feed.Owner {
	tb.Helper()
	return TestFeed(SignUp(tb, store, uuid.NewString()+"@example.com").ID)
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
	return store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
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
	err = store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
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
	return store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
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

// Fingerprint is the SHA-256 of a text, as keys and tokens are stored.
func Fingerprint(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// Changes reads the feed of key changes once.
func Changes(t *testing.T, store *rooms.Rooms, after string) (hashes []string, cursor string) {
	t.Helper()
	since, cursor, err := store.Identities.KeyChanges(t.Context(), []string{after}, time.Now())
	if err != nil || since[after].Expired {
		t.Fatal(since, err)
	}
	return since[after].Hashes, cursor
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

// As runs work in a transaction with the rights of a session on an account, whatever the role.
func As(
	ctx context.Context, store *rooms.Rooms, session *account.Session, on uuid.UUID,
	work func(context.Context, identity.Tx, access.Rights) error,
) error {
	return store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
		rights, err := tx.Rights(ctx, session, on, func(account.Role) error { return nil })
		if err != nil {
			return err
		}
		return work(ctx, tx, rights)
	})
}

// Shop is a shared account in which every session route has something to do.
type Shop struct {
	// Session is that of Owner, acting on Account, and Other another one of Owner.
	Session, Other *account.Session
	Owner, Account *account.Account
	// Member is another owner.
	Member uuid.UUID
	// Live is a live key that can get more in every way: it is disabled, expires, and has one scope and one network. Test is an
	// unrestricted test key.
	Live, Test *account.Key
	// Webhook is a disabled live endpoint with a filter.
	Webhook *webhooks.Endpoint
	// Invitation is an open one to Account. Token is that of an invitation of Owner to Member's account.
	Invitation uuid.UUID
	Token      string
	// Wallet is linked to Owner.
	Wallet account.Identity
}

// NewShop makes a shop whose owner has this hash of a password.
func NewShop(t *testing.T, store *rooms.Rooms, hash string) *Shop {
	t.Helper()
	name := uuid.NewString()
	s := &Shop{Owner: SignUp(t, store, name+"@example.com"), Member: SignUp(t, store, name+"@example.org").ID, Token: name}
	s.Owner.PasswordHash, s.Owner.EmailVerifiedAt = hash, s.Owner.CreatedAt
	Exec(t, store, `UPDATE accounts SET password_hash = $1, email_verified_at = created_at WHERE id = $2`, hash, s.Owner.ID)
	s.Session, s.Other = InsertSession(t, store, s.Owner.ID), InsertSession(t, store, s.Owner.ID)
	var err error
	s.Account, err = account.NewSharedAccount("Shop", Now())
	Must(t, err)
	owner := account.Member{AccountID: s.Account.ID, PersonID: s.Member, Role: account.RoleOwner, CreatedAt: Now()}
	Must(t, As(t.Context(), store, s.Session, s.Owner.ID, func(ctx context.Context, tx identity.Tx, by access.Rights) error {
		if err := tx.InsertSharedAccount(ctx, by, s.Account, s.Owner.ID); err != nil {
			return err
		}
		if err := tx.InsertMember(ctx, tx.OperatorRights(), owner); err != nil {
			return err
		}
		return tx.SetActing(ctx, by, s.Account.ID)
	}))
	s.Session.Acting = &account.Membership{Account: s.Account, Role: account.RoleOwner}
	networks, err := account.ParseNetworks([]string{"203.0.113.7"})
	Must(t, err)
	s.Live = InsertKeyOf(t, store, s.Account.ID, account.KeyRequest{
		Environment: network.Live, ExpiresIn: time.Hour, Scopes: apikey.ScopeOf("webhooks"), Networks: networks,
	})
	Exec(t, store, `UPDATE api_keys SET enabled = false WHERE id = $1`, s.Live.ID)
	s.Test = InsertKey(t, store, s.Account.ID)
	s.insertWebhook(t, store)
	s.invite(t, store)
	s.Wallet, err = account.NewWalletIdentity("0x" + hexDigits(40))
	Must(t, err)
	Exec(t, store, `INSERT INTO identities (issuer, subject, account_id, created_at) VALUES ($1, $2, $3, now())`, s.Wallet.Issuer, s.Wallet.Subject, s.Owner.ID)
	return s
}

// hexDigits are n random digits.
func hexDigits(n int) string {
	digits := ""
	for len(digits) < n {
		digits += uuid.NewString()[:8]
	}
	return digits[:n]
}

func (s *Shop) insertWebhook(t *testing.T, store *rooms.Rooms) {
	t.Helper()
	owner := feed.Owner{AccountID: s.Account.ID, Environment: network.Live}
	e, _, err := WebhookRules(t, make([]byte, 32), nil).New(owner, webhooks.Draft{URL: "https://example.com", Types: []string{"transfer.filled"}}, Now())
	Must(t, err)
	e.Enabled, e.DisabledReason = false, webhooks.DisabledByOwner
	Must(t, store.Webhooks.InsertWebhook(t.Context(), access.OfOperator, e, AuditEntry(s.Account.ID, account.WebhookCreated), [32]byte{}))
	s.Webhook = e
}

// invite makes the two invitations.
func (s *Shop) invite(t *testing.T, store *rooms.Rooms) {
	t.Helper()
	here, err := account.NewInvitation(s.Account.ID, s.Owner.ID, s.Token+"@example.net", account.RoleViewer, Now())
	Must(t, err)
	there, err := account.NewInvitation(s.Member, s.Member, s.Owner.Email, account.RoleDeveloper, Now())
	Must(t, err)
	s.Invitation = here.ID
	hash := account.HashToken(s.Token)
	Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
		if err := tx.ReplaceInvitation(ctx, tx.OperatorRights(), here, nil); err != nil {
			return err
		}
		return tx.ReplaceInvitation(ctx, tx.OperatorRights(), there, &hash)
	}))
}
