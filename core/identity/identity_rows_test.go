package identity_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

func newWalletAccount(t *testing.T) (*account.Account, account.Identity) {
	t.Helper()
	identity, err := account.NewWalletIdentity(pgtest.Alice)
	if err != nil {
		t.Fatal(err)
	}
	a, err := account.NewWalletAccount(identity, pgtest.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a, identity
}

func insertWithIdentity(t *testing.T, store *rooms.Rooms, a *account.Account, identity account.Identity) error {
	t.Helper()
	return store.Identities.InsertAccountWithIdentity(t.Context(), a, identity, pgtest.AuditEntry(a.ID, account.SignedUp))
}

func TestAccountByIdentity(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	created, identity := newWalletAccount(t)
	if err := insertWithIdentity(t, store, created, identity); err != nil {
		t.Fatal(err)
	}
	got, err := store.Identities.AccountByIdentity(t.Context(), identity)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("account differs (-want +got):\n%s", diff)
	}
	absent := func(when string, identity account.Identity) {
		t.Helper()
		if _, err := store.Identities.AccountByIdentity(t.Context(), identity); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s: %v", when, err)
		}
	}
	absent("another issuer", account.Identity{Issuer: "https://id.example.com", Subject: identity.Subject})
	absent("another subject", account.Identity{Issuer: identity.Issuer, Subject: "0x"})

	again := func(want error) {
		t.Helper()
		email, err := account.New("", "other@example.com", "", pgtest.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := insertWithIdentity(t, store, email, identity); !errors.Is(err, want) {
			t.Errorf("a second account with the identity: %v, want %v", err, want)
		}
	}
	again(account.ErrIdentityTaken)
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM accounts`); n != 1 {
		t.Errorf("%d accounts: one was stored without its identity", n)
	}
	rival, _ := newWalletAccount(t)
	if err := insertWithIdentity(t, store, rival, account.Identity{Issuer: "https://id.example.com", Subject: "7"}); !errors.Is(err, account.ErrEmailTaken) {
		t.Errorf("a second account with the address: %v", err)
	}
	if err := store.Identities.DisableAccount(t.Context(), created.Email, pgtest.Browser, pgtest.Now()); err != nil {
		t.Fatal(err)
	}
	absent("disabled", identity)
	again(account.ErrIdentityTaken)
	if err := store.Identities.DeleteAccountByID(t.Context(), access.OfOperator, created.ID, "", pgtest.Browser, pgtest.Now()); err != nil {
		t.Fatal(err)
	}
	absent("deleted", identity)
	again(nil)
	if err := store.Identities.DeleteAccountByID(t.Context(), access.OfOperator, created.ID, "", pgtest.Browser, pgtest.Now()); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("delete again: %v", err)
	}
	if _, err := store.Identities.AccountByIdentity(t.Context(), identity); err != nil {
		t.Errorf("the identity's new account: %v", err)
	}
}

func TestInsertAccountWithIdentity_Taken(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	const rivals = 16
	var winners atomic.Int32
	var work sync.WaitGroup
	for range rivals {
		a, identity := newWalletAccount(t)
		work.Go(func() {
			switch err := insertWithIdentity(t, store, a, identity); {
			case err == nil:
				winners.Add(1)
			case !errors.Is(err, account.ErrEmailTaken) && !errors.Is(err, account.ErrIdentityTaken):
				t.Error(err)
			}
		})
	}
	work.Wait()
	if winners.Load() != 1 {
		t.Errorf("%d of %d rivals got the identity", winners.Load(), rivals)
	}
}
