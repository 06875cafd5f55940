package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
	"intents.internal/core/postgres/pgtest"
)

func TestAccountByEmail(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	created := insertAccount(t, store, "Ann@Example.com")
	insertAccount(t, store, "other@example.com")
	got, err := store.AccountByEmail(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("account differs (-want +got):\n%s", diff)
	}
	if _, err := store.AccountByEmail(t.Context(), "nobody@example.com"); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("an unknown address: %v", err)
	}
}

func TestEmailIsOneAccounts(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	insertAccount(t, store, "ann@example.com")
	again := func(email string) error {
		a, err := account.New("", email, "hash", now())
		if err != nil {
			t.Fatal(err)
		}
		return store.InsertAccount(t.Context(), a)
	}
	for _, email := range []string{"ann@example.com", "ANN@example.COM"} {
		if err := again(email); !errors.Is(err, account.ErrEmailTaken) {
			t.Errorf("%s: %v", email, err)
		}
	}
	if err := store.DisableAccount(t.Context(), "ann@example.com", now()); err != nil {
		t.Fatal(err)
	}
	if err := again("ann@example.com"); !errors.Is(err, account.ErrEmailTaken) {
		t.Errorf("of a disabled account: %v", err)
	}
	if err := store.DeleteAccount(t.Context(), "ann@example.com", now()); err != nil {
		t.Fatal(err)
	}
	if err := again("ann@example.com"); err != nil {
		t.Errorf("of a deleted account: %v", err)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM accounts`); n != 2 {
		t.Errorf("%d accounts: a deleted one must stay for audit", n)
	}
}

func TestAccountLife(t *testing.T) {
	t.Parallel()
	const email = "ann@example.com"
	type access struct{ SignIn, Session, Key bool }
	all, none := access{true, true, true}, access{}
	disable := func(ctx context.Context, s *postgres.Store) error { return s.DisableAccount(ctx, email, now()) }
	enable := func(ctx context.Context, s *postgres.Store) error { return s.EnableAccount(ctx, email) }
	remove := func(ctx context.Context, s *postgres.Store) error { return s.DeleteAccount(ctx, email, now()) }
	type step struct {
		do   func(context.Context, *postgres.Store) error
		err  error
		want access
	}
	for name, steps := range map[string][]step{
		"disabled and enabled": {{disable, nil, none}, {disable, nil, none}, {enable, nil, access{SignIn: true, Key: true}}},
		"enabled for nothing":  {{enable, nil, all}},
		"deleted":              {{remove, nil, none}, {remove, account.ErrNotFound, none}, {enable, account.ErrNotFound, none}, {disable, account.ErrNotFound, none}},
		"disabled and deleted": {{disable, nil, none}, {remove, nil, none}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := pgtest.New(t)
			ann, bystander := insertAccount(t, store, email), insertAccount(t, store, "bystander@example.com")
			key, session, others := insertKey(t, store, ann.ID), insertSession(t, store, ann.ID), insertSession(t, store, bystander.ID)
			look := func() access {
				_, signIn := store.AccountByEmail(t.Context(), email)
				_, _, held := store.Session(t.Context(), session.TokenHash, now())
				_, usable := store.UsableKey(t.Context(), key.Hash, now())
				return access{signIn == nil, held == nil, usable == nil}
			}
			if got := look(); got != all {
				t.Fatalf("at first: %+v", got)
			}
			for i, s := range steps {
				if err := s.do(t.Context(), store); !errors.Is(err, s.err) {
					t.Errorf("step %d: %v, want %v", i, err, s.err)
				}
				if got := look(); got != s.want {
					t.Errorf("after step %d: %+v, want %+v", i, got, s.want)
				}
			}
			if _, err := store.AccountByEmail(t.Context(), bystander.Email); err != nil {
				t.Errorf("another account: %v", err)
			}
			if _, _, err := store.Session(t.Context(), others.TokenHash, now()); err != nil {
				t.Errorf("another account's session: %v", err)
			}
		})
	}
}

func TestEndingAnUnknownAccount(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	for name, err := range map[string]error{
		"disable": store.DisableAccount(t.Context(), "nobody@example.com", now()),
		"enable":  store.EnableAccount(t.Context(), "nobody@example.com"),
		"delete":  store.DeleteAccount(t.Context(), "nobody@example.com", now()),
	} {
		if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func insertSession(t *testing.T, store *postgres.Store, owner uuid.UUID) *account.Session {
	t.Helper()
	session, _, err := account.NewSession(owner, "203.0.113.7", "Browser/1.0", now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.InsertSession(t.Context(), session); err != nil {
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

func TestPrune(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	key := insertKey(t, store, ann.ID)
	expired, alive := insertSession(t, store, ann.ID), insertSession(t, store, ann.ID)
	pgtest.Exec(t, store, `UPDATE sessions SET expires_at = now() - interval '1 s' WHERE id = $1`, expired.ID)
	pgtest.Exec(t, store, `UPDATE key_changes SET changed_at = now() - interval '49 h'`)
	_, cursor := changes(t, store, "")
	if err := store.DeleteKey(t.Context(), ann.ID, key.ID, now()); err != nil {
		t.Fatal(err)
	}
	if err := store.Prune(t.Context(), now()); err != nil {
		t.Fatal(err)
	}
	if left := pgtest.LookUp[string](t, store, `SELECT string_agg(id::text, ',') FROM sessions`); left != alive.ID.String() {
		t.Errorf("sessions left: %s, want %s", left, alive.ID)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM key_changes`); n != 1 {
		t.Errorf("%d key changes are left, want the one of today", n)
	}
	if hashes, _ := changes(t, store, cursor); len(hashes) != 1 {
		t.Errorf("a reader is told of %d changes after pruning, want 1", len(hashes))
	}
}
