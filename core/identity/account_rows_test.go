package identity_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

func TestAccountByEmail(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	created := pgtest.SignUp(t, store, "Ann@Example.com")
	pgtest.SignUp(t, store, "other@example.com")
	got, err := store.Identities.AccountByEmail(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("account differs (-want +got):\n%s", diff)
	}
	if _, err := store.Identities.AccountByEmail(t.Context(), "nobody@example.com"); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("an unknown address: %v", err)
	}
}

func TestInsertAccount_EmailTaken(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	pgtest.SignUp(t, store, "ann@example.com")
	again := func(email string) error {
		a, err := account.New("", email, "hash", pgtest.Now())
		if err != nil {
			t.Fatal(err)
		}
		return store.Identities.InsertAccount(t.Context(), a, pgtest.AuditEntry(a.ID, account.SignedUp))
	}
	for _, email := range []string{"ann@example.com", "ANN@example.COM"} {
		if err := again(email); !errors.Is(err, account.ErrEmailTaken) {
			t.Errorf("%s: %v", email, err)
		}
	}
	if err := store.Identities.DisableAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()); err != nil {
		t.Fatal(err)
	}
	if err := again("ann@example.com"); !errors.Is(err, account.ErrEmailTaken) {
		t.Errorf("of a disabled account: %v", err)
	}
	if err := store.Identities.DeleteAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()); err != nil {
		t.Fatal(err)
	}
	if err := again("ann@example.com"); err != nil {
		t.Errorf("of a deleted account: %v", err)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM accounts`); n != 2 {
		t.Errorf("%d accounts: a deleted one must stay for audit", n)
	}
}

func TestAccount_DisableEnableDelete(t *testing.T) {
	t.Parallel()
	const email = "ann@example.com"
	type access struct{ SignIn, Session, Key bool }
	all, none := access{true, true, true}, access{}
	disable := func(ctx context.Context, s *rooms.Rooms) error {
		return s.Identities.DisableAccount(ctx, email, pgtest.Browser, pgtest.Now())
	}
	enable := func(ctx context.Context, s *rooms.Rooms) error {
		return s.Identities.EnableAccount(ctx, email, pgtest.Browser, pgtest.Now())
	}
	remove := func(ctx context.Context, s *rooms.Rooms) error {
		return s.Identities.DeleteAccount(ctx, email, pgtest.Browser, pgtest.Now())
	}
	type step struct {
		do   func(context.Context, *rooms.Rooms) error
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
			ann, bystander := pgtest.SignUp(t, store, email), pgtest.SignUp(t, store, "bystander@example.com")
			key, session, others := pgtest.InsertKey(t, store, ann.ID), pgtest.InsertSession(t, store, ann.ID), pgtest.InsertSession(t, store, bystander.ID)
			look := func() access {
				_, signIn := store.Identities.AccountByEmail(t.Context(), email)
				_, _, held := store.Identities.Session(t.Context(), session.TokenHash, pgtest.Now())
				_, _, usable := store.Identities.UsableKey(t.Context(), key.Hash, pgtest.Now())
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
			if _, err := store.Identities.AccountByEmail(t.Context(), bystander.Email); err != nil {
				t.Errorf("another account: %v", err)
			}
			if _, _, err := store.Identities.Session(t.Context(), others.TokenHash, pgtest.Now()); err != nil {
				t.Errorf("another account's session: %v", err)
			}
		})
	}
}
