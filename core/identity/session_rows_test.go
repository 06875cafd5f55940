package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

func TestSession(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	want := pgtest.InsertSession(t, store, ann.ID)
	other := pgtest.InsertSession(t, store, pgtest.SignUp(t, store, "bob@example.com").ID)

	got, owner, err := store.Identities.Session(t.Context(), want.TokenHash, want.ExpiresAt.Add(-time.Millisecond))
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
		if _, _, err := store.Identities.Session(t.Context(), hash, at); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s: %v", when, err)
		}
	}
	gone("an unknown token", account.HashToken("guess"), pgtest.Now())
	gone("at its end", want.TokenHash, want.ExpiresAt)
	for range 2 { // ending it again is fine
		if err := store.Identities.DeleteSession(t.Context(), want.TokenHash, func(person uuid.UUID) account.AuditEntry {
			return account.NewHourlyEntry(person, person.String(), pgtest.Browser, account.SignedOut, pgtest.Now())
		}); err != nil {
			t.Fatal(err)
		}
	}
	gone("ended", want.TokenHash, pgtest.Now())
	if _, _, err := store.Identities.Session(t.Context(), other.TokenHash, pgtest.Now()); err != nil {
		t.Errorf("another session: %v", err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	first, second, third := pgtest.InsertSession(t, store, ann.ID), pgtest.InsertSession(t, store, ann.ID), pgtest.InsertSession(t, store, ann.ID)
	others, expired := pgtest.InsertSession(t, store, bob.ID), pgtest.InsertSession(t, store, ann.ID)
	pgtest.Exec(t, store, `UPDATE sessions SET expires_at = now() - interval '1 s' WHERE id = $1`, expired.ID)
	listed := func(when string, want ...*account.Session) {
		t.Helper()
		got, err := store.Identities.Sessions(t.Context(), ann.ID, pgtest.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]*account.Session{}, want...), got); diff != "" {
			t.Errorf("%s: sessions differ (-want +got):\n%s", when, diff)
		}
		if _, _, err := store.Identities.Session(t.Context(), others.TokenHash, pgtest.Now()); err != nil {
			t.Errorf("%s: another account's session: %v", when, err)
		}
	}
	entry := func() account.AuditEntry { return pgtest.AuditEntry(ann.ID, account.SessionsRevoked) }
	except := func(keep uuid.UUID, want int) {
		t.Helper()
		var ended int
		err := asOperator(t.Context(), store, func(tx identity.Tx) (err error) {
			ended, err = tx.DeleteSessionsExcept(t.Context(), tx.OperatorRights(), ann.ID, keep, entry())
			return err
		})
		if ended != want || err != nil {
			t.Errorf("%d sessions ended, %v; want %d", ended, err, want)
		}
	}
	end := func(id uuid.UUID) error {
		return asOperator(t.Context(), store, func(tx identity.Tx) error {
			return tx.DeleteSessionByID(t.Context(), tx.OperatorRights(), ann.ID, id, entry())
		})
	}
	listed("at first", third, second, first)

	for name, id := range map[string]uuid.UUID{"another account's": others.ID, "unknown": uuid.New()} {
		if err := end(id); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("end %s: %v", name, err)
		}
	}
	if err := end(second.ID); err != nil {
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
	ann := pgtest.SignUp(t, store, "ann@example.com")
	for _, end := range []func() error{
		// ann is as she was when her password was checked
		func() error {
			return store.Identities.SetPassword(t.Context(), ann.Email, "another hash", pgtest.Browser, pgtest.Now())
		},
		func() error {
			return store.Identities.DisableAccount(t.Context(), ann.Email, pgtest.Browser, pgtest.Now())
		},
		func() error {
			return store.Identities.DeleteAccount(t.Context(), ann.Email, pgtest.Browser, pgtest.Now())
		},
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		session, _, err := account.NewSession(ann.ID, "", "", pgtest.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Identities.InsertSession(t.Context(), session, ann, pgtest.AuditEntry(ann.ID, account.SignedIn)); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}

// A sign-in ends the sessions beyond the newest account.MaxSessions of its person, whatever there was before, and nobody else's; a list never
// has more.
func TestInsertSession_Newest(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	others := pgtest.InsertSession(t, store, bob.ID)
	const before = 1_500 // from before there was a maximum
	pgtest.Exec(t, store, `INSERT INTO sessions (id, token_hash, account_id, ip_address, user_agent, expires_at, created_at, updated_at)
		SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, sha256(n::text::bytea), $1, '', '',
		now() + interval '1 day', now(), now() FROM generate_series(1, $2) AS n`, ann.ID, before)
	list := func() []*account.Session {
		t.Helper()
		sessions, err := store.Identities.Sessions(t.Context(), ann.ID, pgtest.Now())
		if err != nil {
			t.Fatal(err)
		}
		return sessions
	}
	count := func() int {
		return pgtest.LookUp[int](t, store, `SELECT count(*) FROM sessions WHERE account_id = $1`, ann.ID)
	}
	if got := len(list()); got != account.MaxSessions {
		t.Errorf("%d of %d sessions are listed", got, before)
	}
	pgtest.InsertSession(t, store, ann.ID) // one sign-in ends a batch
	if got := count(); got >= before-500 {
		t.Errorf("%d sessions after the first sign-in", got)
	}
	var newest []uuid.UUID
	for range 3 {
		newest = append([]uuid.UUID{pgtest.InsertSession(t, store, ann.ID).ID}, newest...)
	}
	if got := count(); got != account.MaxSessions {
		t.Errorf("%d sessions are left, want %d", got, account.MaxSessions)
	}
	if sessions := list(); len(sessions) != account.MaxSessions || sessions[0].ID != newest[0] || sessions[2].ID != newest[2] {
		t.Errorf("%d sessions, the newest is %s", len(sessions), sessions[0].ID)
	}
	if sessions, err := store.Identities.Sessions(t.Context(), bob.ID, pgtest.Now()); err != nil || len(sessions) != 1 || sessions[0].ID != others.ID {
		t.Errorf("another's sessions: %v, %v", sessions, err)
	}
}
