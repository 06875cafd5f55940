package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
	"intents.internal/core/postgres/pgtest"
)

func insertSession(t *testing.T, store *postgres.Store, owner uuid.UUID) *account.Session {
	t.Helper()
	session, _, err := account.NewSession(owner, "203.0.113.7", "Browser/1.0", now())
	if err != nil {
		t.Fatal(err)
	}
	as := &account.Account{ID: owner, PasswordHash: pgtest.LookUp[string](t, store, "SELECT password_hash FROM accounts WHERE id = $1", owner)}
	if err := store.InsertSession(t.Context(), session, as, auditEntry(owner, account.SignedIn)); err != nil {
		t.Fatal(err)
	}
	return session
}

func TestSession(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	want := insertSession(t, store, ann.ID)
	other := insertSession(t, store, insertAccount(t, store, "bob@example.com").ID)

	got, owner, err := store.Session(t.Context(), want.TokenHash, want.ExpiresAt.Add(-time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ann, owner); diff != "" {
		t.Errorf("its account differs (-want +got):\n%s", diff)
	}
	gone := func(when string, hash [32]byte, at time.Time) {
		t.Helper()
		if _, _, err := store.Session(t.Context(), hash, at); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s: %v", when, err)
		}
	}
	gone("an unknown token", account.HashToken("guess"), now())
	gone("at its end", want.TokenHash, want.ExpiresAt)
	for range 2 { // ending it again is fine
		if err := store.DeleteSession(t.Context(), want.TokenHash); err != nil {
			t.Fatal(err)
		}
	}
	gone("ended", want.TokenHash, now())
	if _, _, err := store.Session(t.Context(), other.TokenHash, now()); err != nil {
		t.Errorf("another session: %v", err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := insertAccount(t, store, "ann@example.com"), insertAccount(t, store, "bob@example.com")
	first, second, third := insertSession(t, store, ann.ID), insertSession(t, store, ann.ID), insertSession(t, store, ann.ID)
	others, expired := insertSession(t, store, bob.ID), insertSession(t, store, ann.ID)
	pgtest.Exec(t, store, `UPDATE sessions SET expires_at = now() - interval '1 s' WHERE id = $1`, expired.ID)
	listed := func(when string, want ...*account.Session) {
		t.Helper()
		got, err := store.Sessions(t.Context(), ann.ID, now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]*account.Session{}, want...), got); diff != "" {
			t.Errorf("%s: sessions differ (-want +got):\n%s", when, diff)
		}
		if _, _, err := store.Session(t.Context(), others.TokenHash, now()); err != nil {
			t.Errorf("%s: another account's session: %v", when, err)
		}
	}
	entry := func() account.AuditEntry { return auditEntry(ann.ID, account.SessionsRevoked) }
	except := func(keep uuid.UUID, want int) {
		t.Helper()
		if ended, err := store.DeleteSessionsExcept(t.Context(), ann.ID, keep, entry()); ended != want || err != nil {
			t.Errorf("%d sessions ended, %v; want %d", ended, err, want)
		}
	}
	listed("at first", third, second, first)

	for name, id := range map[string]uuid.UUID{"another account's": others.ID, "unknown": uuid.New()} {
		if err := store.DeleteSessionByID(t.Context(), ann.ID, id, entry()); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("end %s: %v", name, err)
		}
	}
	if err := store.DeleteSessionByID(t.Context(), ann.ID, second.ID, entry()); err != nil {
		t.Fatal(err)
	}
	listed("one ended", third, first)
	except(first.ID, 1)
	listed("all but one ended", first)
	except(first.ID, 0)
	except(uuid.Nil, 1)
	listed("all ended")
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM audit_log WHERE action = 'sessions_revoked'`); n != 3 {
		t.Errorf("%d entries for three endings", n)
	}
}

func TestInsertSession_AccountMayNotSignIn(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	for _, end := range []func() error{
		// ann is as she was when her password was checked
		func() error { return store.SetPassword(t.Context(), ann.Email, "another hash", browser, now()) },
		func() error { return store.DisableAccount(t.Context(), ann.Email, browser, now()) },
		func() error { return store.DeleteAccount(t.Context(), ann.Email, browser, now()) },
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		session, _, err := account.NewSession(ann.ID, "", "", now())
		if err != nil {
			t.Fatal(err)
		}
		if err := store.InsertSession(t.Context(), session, ann, auditEntry(ann.ID, account.SignedIn)); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}
