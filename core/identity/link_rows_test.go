package identity_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

func otherWallet(n int) account.Identity {
	return account.Identity{Issuer: account.WalletIssuer, Subject: fmt.Sprintf("0x%040x", n)}
}

// signedInWallet is an account with one identity and a session of it.
func signedInWallet(t *testing.T, store *rooms.Rooms) (*account.Account, account.Identity, *account.Session) {
	t.Helper()
	owner, linked := newWalletAccount(t)
	if err := insertWithIdentity(t, store, owner, linked); err != nil {
		t.Fatal(err)
	}
	return owner, linked, pgtest.InsertSession(t, store, owner.ID)
}

func link(t *testing.T, store *rooms.Rooms, session *account.Session, linked account.Identity) error {
	t.Helper()
	return pgtest.As(t.Context(), store, session, session.AccountID, func(ctx context.Context, tx identity.Tx, by access.Rights) error {
		return tx.LinkIdentity(ctx, by, linked, pgtest.AuditEntry(session.AccountID, account.IdentityLinked))
	})
}

func unlink(t *testing.T, store *rooms.Rooms, session *account.Session, linked account.Identity) error {
	t.Helper()
	issuers := []string{account.WalletIssuer}
	return pgtest.As(t.Context(), store, session, session.AccountID, func(ctx context.Context, tx identity.Tx, by access.Rights) error {
		return tx.UnlinkIdentity(ctx, by, linked, issuers, false, pgtest.AuditEntry(session.AccountID, account.IdentityUnlinked))
	})
}

func TestLinkIdentity_Bound(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	_, first, session := signedInWallet(t, store)
	var linked atomic.Int32
	var work sync.WaitGroup
	for n := range account.MaxIdentities + 5 {
		work.Go(func() {
			switch err := link(t, store, session, otherWallet(n)); {
			case err == nil:
				linked.Add(1)
			case !errors.Is(err, account.ErrTooManyIdentities):
				t.Error(err)
			}
		})
	}
	work.Wait()
	identities, err := store.Identities.Identities(t.Context(), session.AccountID)
	if err != nil || len(identities) != account.MaxIdentities || int(linked.Load()) != account.MaxIdentities-1 || identities[0].Identity != first {
		t.Errorf("%d were linked, the account has %v, %v", linked.Load(), identities, err)
	}
	if err := link(t, store, session, first); err != nil {
		t.Errorf("one that the account has: %v", err)
	}
}

// A link that was under way when its session ended, as by a reset of the password, is refused.
func TestLinkIdentity_EndedSession(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	owner, linked, session := signedInWallet(t, store)
	pgtest.Exec(t, store, `DELETE FROM sessions`)
	if err := link(t, store, session, otherWallet(1)); !errors.Is(err, account.ErrSignedOut) {
		t.Errorf("link: %v", err)
	}
	if err := unlink(t, store, session, linked); !errors.Is(err, account.ErrSignedOut) {
		t.Errorf("unlink: %v", err)
	}
	if err := store.Identities.DisableAccount(t.Context(), owner.Email, pgtest.Browser, pgtest.Now()); err != nil {
		t.Fatal(err)
	}
	if err := link(t, store, session, otherWallet(1)); !errors.Is(err, account.ErrSignedOut) {
		t.Errorf("disabled: %v", err)
	}
}

// Of two identities that are unlinked at once, one stays.
func TestUnlinkIdentity_Concurrent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	_, first, session := signedInWallet(t, store)
	for round := range 10 {
		second := otherWallet(round)
		if err := link(t, store, session, second); err != nil {
			t.Fatal(err)
		}
		var unlinked, refused atomic.Int32
		var work sync.WaitGroup
		for _, linked := range []account.Identity{first, second} {
			work.Go(func() {
				switch err := unlink(t, store, session, linked); {
				case err == nil:
					unlinked.Add(1)
				case errors.Is(err, account.ErrLastWayIn):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		work.Wait()
		left, err := store.Identities.Identities(t.Context(), session.AccountID)
		if err != nil || len(left) != 1 || unlinked.Load() != 1 || refused.Load() != 1 {
			t.Fatalf("round %d: %d unlinked, %d refused, left %v, %v", round, unlinked.Load(), refused.Load(), left, err)
		}
		first = left[0].Identity
	}
}

func TestUnlinkIdentity_Password(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	_, linked, session := signedInWallet(t, store)
	pgtest.Exec(t, store, `UPDATE accounts SET password_hash = 'hash'`)
	if err := unlink(t, store, session, linked); err != nil {
		t.Errorf("an account with a password: %v", err)
	}
	if email := pgtest.LookUp[string](t, store, `SELECT email FROM accounts`); email != session.AccountID.String()+"@unlinked.invalid" {
		t.Errorf("its placeholder is %s", email)
	}
}

// A sign-in that found the account before its identity was unlinked starts no session after.
func TestInsertIdentitySession_Unlinked(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	owner, linked, session := signedInWallet(t, store)
	if err := link(t, store, session, otherWallet(1)); err != nil {
		t.Fatal(err)
	}
	signIn := func() error {
		next, _, err := account.NewSession(owner.ID, "", "", pgtest.Now())
		if err != nil {
			t.Fatal(err)
		}
		return store.Identities.InsertIdentitySession(t.Context(), next, owner, linked, pgtest.AuditEntry(owner.ID, account.SignedIn))
	}
	if err := signIn(); err != nil {
		t.Errorf("linked: %v", err)
	}
	if err := unlink(t, store, session, linked); err != nil {
		t.Fatal(err)
	}
	if err := signIn(); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("unlinked: %v", err)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM sessions`); n != 1 {
		t.Errorf("%d sessions", n)
	}
}
