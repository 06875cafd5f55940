package identity_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
)

// join makes a person a member of an account.
func join(t *testing.T, store *rooms.Rooms, accountID, person uuid.UUID, role account.Role) account.Member {
	t.Helper()
	m := account.Member{AccountID: accountID, PersonID: person, Role: role, CreatedAt: pgtest.Now()}
	pgtest.Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error { return tx.InsertMember(ctx, tx.OperatorRights(), m) }))
	return m
}

// share makes a shared account with an owner.
func share(t *testing.T, store *rooms.Rooms, owner uuid.UUID) *account.Account {
	t.Helper()
	shared, err := account.NewSharedAccount("Shop", pgtest.Now())
	pgtest.Must(t, err)
	pgtest.Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
		return tx.InsertSharedAccount(ctx, tx.OperatorRights(), shared, owner)
	}))
	return shared
}

// acts lets a session act on an account.
func acts(t *testing.T, store *rooms.Rooms, session *account.Session, accountID uuid.UUID) error {
	t.Helper()
	return pgtest.As(t.Context(), store, session, session.AccountID, func(ctx context.Context, tx identity.Tx, by access.Rights) error {
		return tx.SetActing(ctx, by, accountID)
	})
}

// acting is the account that a session acts on and the role, nil and empty for a session that has ended.
func acting(t *testing.T, store *rooms.Rooms, session *account.Session) (uuid.UUID, account.Role) {
	t.Helper()
	got, _, err := store.Identities.Session(t.Context(), session.TokenHash, pgtest.Now())
	if errors.Is(err, account.ErrNotFound) {
		return uuid.Nil, ""
	}
	pgtest.Must(t, err)
	if got.Acting == nil {
		return got.ActingID(), account.RoleOwner
	}
	return got.ActingID(), got.Acting.Role
}

// Every account has its holder, whichever version made it; a shared one has its members alone.
func TestStore_Members(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	old := uuid.New() // as the version before this one inserts it
	pgtest.Exec(t, store, `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at) VALUES ($1, 'Old', 'old@example.com', '', now(), now())`, old)
	shop := share(t, store, ann.ID)
	join(t, store, shop.ID, bob.ID, account.RoleViewer)
	join(t, store, ann.ID, bob.ID, account.RoleDeveloper)
	for _, c := range []struct {
		of   uuid.UUID
		want map[string]account.Role
	}{
		{ann.ID, map[string]account.Role{"ann@example.com": "owner", "bob@example.com": "developer"}},
		{old, map[string]account.Role{"old@example.com": "owner"}},
		{shop.ID, map[string]account.Role{"ann@example.com": "owner", "bob@example.com": "viewer"}},
	} {
		roster, err := store.Identities.Members(t.Context(), c.of)
		pgtest.Must(t, err)
		got := map[string]account.Role{}
		for _, m := range roster {
			got[m.Email] = m.Role
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	}
	memberships, err := store.Identities.Memberships(t.Context(), bob.ID)
	pgtest.Must(t, err)
	want := []account.Membership{{Account: bob, Role: "owner"}, {Account: shop, Role: "viewer"}, {Account: ann, Role: "developer"}}
	if diff := cmp.Diff(want, memberships); diff != "" {
		t.Errorf("memberships (-want +got):\n%s", diff)
	}
	if _, err := store.Identities.Membership(t.Context(), shop.ID, old); !errors.Is(err, account.ErrNotMember) {
		t.Errorf("of a stranger: %v", err)
	}
	if _, err := store.Identities.AccountByEmail(t.Context(), shop.Email); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("a shared account can be signed in to: %v", err)
	}
	if err := store.Identities.SetPassword(t.Context(), shop.Email, "hash", pgtest.Browser, pgtest.Now()); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("a shared account gets a password: %v", err)
	}
}

// A session acts on another account while the person is its member and it can be used, with the role of that moment.
func TestSession_Acting(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	session, elsewhere := pgtest.InsertSession(t, store, bob.ID), pgtest.InsertSession(t, store, bob.ID)
	is := func(when string, accountID uuid.UUID, role account.Role) {
		t.Helper()
		if id, got := acting(t, store, session); id != accountID || got != role {
			t.Errorf("%s: acts on %s as %q, want %s as %q", when, id, got, accountID, role)
		}
	}
	if err := acts(t, store, session, ann.ID); !errors.Is(err, account.ErrNotMember) {
		t.Errorf("a stranger: %v", err)
	}
	is("a stranger", bob.ID, "owner")
	m := join(t, store, ann.ID, bob.ID, account.RoleViewer)
	pgtest.Must(t, acts(t, store, session, ann.ID))
	is("a member", ann.ID, "viewer")
	m.Role = account.RoleDeveloper
	pgtest.Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error { return tx.ChangeMember(ctx, tx.OperatorRights(), m) }))
	is("with another role", ann.ID, "developer")
	listed, err := store.Identities.Sessions(t.Context(), bob.ID, pgtest.Now())
	pgtest.Must(t, err)
	if listed[0].ActingID() != bob.ID || listed[1].ActingID() != ann.ID {
		t.Errorf("the list has %s and %s", listed[0].ActingID(), listed[1].ActingID())
	}
	pgtest.Must(t, store.Identities.DisableAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()))
	is("disabled", uuid.Nil, "")
	if err := acts(t, store, elsewhere, ann.ID); !errors.Is(err, account.ErrNotMember) {
		t.Errorf("a disabled account: %v", err)
	}
	pgtest.Must(t, store.Identities.EnableAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()))
	is("enabled", uuid.Nil, "")
	session = pgtest.InsertSession(t, store, bob.ID)
	pgtest.Must(t, acts(t, store, session, ann.ID))
	pgtest.Must(t, acts(t, store, session, bob.ID))
	is("back", bob.ID, "owner")
	pgtest.Must(t, acts(t, store, session, ann.ID))
	pgtest.Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
		return tx.DeleteMember(ctx, tx.OperatorRights(), m, uuid.Nil)
	}))
	is("removed", uuid.Nil, "")
	if id, _ := acting(t, store, elsewhere); id != bob.ID {
		t.Error("a session that acts on the person's own account has ended")
	}
	join(t, store, ann.ID, bob.ID, account.RoleOwner)
	pgtest.Must(t, acts(t, store, elsewhere, ann.ID))
	pgtest.Must(t, store.Identities.DeleteAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()))
	session = elsewhere
	is("deleted", uuid.Nil, "")
}

// A session never goes on with the person's own account because the one that it acts on is gone, whoever ended that and how. The session
// that deletes a shared account stays.
func TestSession_ActingEnds(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	for name, end := range map[string]func(deleting, watching *account.Session, id uuid.UUID) error{
		"deleted": func(deleting, _ *account.Session, id uuid.UUID) error {
			return pgtest.As(t.Context(), store, deleting, id, func(ctx context.Context, tx identity.Tx, by access.Rights) error {
				return tx.DeleteSharedAccount(ctx, by, id, "", pgtest.Browser, pgtest.Now())
			})
		},
		"deleted by the version before": func(_, _ *account.Session, id uuid.UUID) error {
			pgtest.Exec(t, store, `UPDATE accounts SET deleted_at = now() WHERE id = $1`, id)
			return nil
		},
		"removed by the version before": func(_, _ *account.Session, id uuid.UUID) error {
			pgtest.Exec(t, store, `DELETE FROM members WHERE account_id = $1`, id)
			return nil
		},
	} {
		shop := share(t, store, ann.ID)
		join(t, store, shop.ID, bob.ID, account.RoleViewer)
		deleting, watching := pgtest.InsertSession(t, store, ann.ID), pgtest.InsertSession(t, store, bob.ID)
		pgtest.Must(t, acts(t, store, deleting, shop.ID))
		pgtest.Must(t, acts(t, store, watching, shop.ID))
		pgtest.Must(t, end(deleting, watching, shop.ID))
		if id, _ := acting(t, store, watching); id != uuid.Nil {
			t.Errorf("%s: the member's session acts on %s", name, id)
		}
		if listed, err := store.Identities.Sessions(t.Context(), bob.ID, pgtest.Now()); err != nil || len(listed) != 0 {
			t.Errorf("%s: %d sessions are listed, %v", name, len(listed), err)
		}
		if id, _ := acting(t, store, deleting); name == "deleted" && id != ann.ID {
			t.Errorf("%s: the owner's session acts on %s", name, id)
		}
	}
}

// Ending an account ends its memberships on both sides, unless a shared account would be left without an owner who is not disabled.
func TestDeleteAccount_Members(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	shop := share(t, store, ann.ID)
	join(t, store, shop.ID, bob.ID, account.RoleDeveloper)
	join(t, store, bob.ID, ann.ID, account.RoleOwner)
	k := pgtest.InsertKey(t, store, shop.ID)
	if err := store.Identities.DeleteAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()); !errors.Is(err, account.ErrLastOwner) {
		t.Fatalf("the last owner: %v", err)
	}
	pgtest.Exec(t, store, `UPDATE members SET role = 'owner' WHERE account_id = $1`, shop.ID)
	pgtest.Exec(t, store, `UPDATE accounts SET disabled_at = now() WHERE id = $1`, bob.ID)
	if err := store.Identities.DeleteAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()); !errors.Is(err, account.ErrLastOwner) {
		t.Fatalf("the last owner who can act: %v", err)
	}
	roster, err := store.Identities.Members(t.Context(), shop.ID)
	pgtest.Must(t, err)
	if ann, err := roster.Find(ann.ID); err != nil || ann.Disabled {
		t.Errorf("an owner who can act: %+v, %v", ann, err)
	}
	if bob, err := roster.Find(bob.ID); err != nil || !bob.Disabled {
		t.Errorf("a disabled owner: %+v, %v", bob, err)
	}
	pgtest.Exec(t, store, `UPDATE accounts SET disabled_at = NULL WHERE id = $1`, bob.ID)
	pgtest.Must(t, store.Identities.DeleteAccount(t.Context(), "ann@example.com", pgtest.Browser, pgtest.Now()))
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM members WHERE person_id = $1 OR account_id = $1`, ann.ID); n != 0 {
		t.Errorf("%d memberships are left", n)
	}
	if keys, err := store.Identities.Keys(t.Context(), shop.ID); err != nil || len(keys) != 1 || keys[0].ID != k.ID {
		t.Errorf("the keys of the account: %v, %v", keys, err)
	}
	for _, of := range []uuid.UUID{shop.ID, bob.ID} {
		log, _, err := store.Identities.AuditLog(t.Context(), of, access.AuditQuery{Limit: 1})
		pgtest.Must(t, err)
		if log[0].Action != account.MemberLeft || log[0].PersonEmail != "ann@example.com" {
			t.Errorf("the audit log has %+v", log[0])
		}
	}
	pgtest.Must(t, store.Identities.DeleteAccountByID(t.Context(), access.OfOperator, shop.ID, "", pgtest.Browser, pgtest.Now()))
	if memberships, err := store.Identities.Memberships(t.Context(), bob.ID); err != nil || len(memberships) != 1 {
		t.Errorf("memberships %v, %v", memberships, err)
	}
}
