package identity_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/webhooks"
)

// While another transaction has the turn of an account or of a person, every write of a session that locks their rows waits without a
// connection. The database has none of these webhooks and sessions, and is not asked.
func TestTurns_EveryWrite(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	core := newServiceOn(t, store, withPasswords(t))
	hooks := webhooks.NewService(store.Webhooks, nil, core)
	ann, bob, eve := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com"), signedIn(t, core, "eve@example.com")
	shop := ann.shares("Shop")
	token := ann.invites("bob@example.com", account.RoleDeveloper)
	is(t, "bob", bob.accepts(token), nil)
	token = ann.invites("eve@example.com", account.RoleDeveloper)
	key, _, err := core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "ci"})
	ok(t, err)
	owner, member, stranger := ann.principal(), bob.principal(), eve.principal()
	ofShop := map[string]func(context.Context) error{
		"act": func(ctx context.Context) error { return core.Members.Act(ctx, bob.client, member, shop) },
		"change a member": func(ctx context.Context) error {
			return call(core.Members.ChangeRole(ctx, ann.client, owner, bob.id, account.RoleViewer))
		},
		"remove a member": func(ctx context.Context) error { return call(core.Members.Remove(ctx, ann.client, owner, bob.id)) },
		"leave":           func(ctx context.Context) error { return call(core.Members.Leave(ctx, bob.client, member)) },
		"invite": func(ctx context.Context) error {
			return call(core.Members.Invite(ctx, ann.client, owner, "dan@example.com", account.RoleViewer, false))
		},
		"accept": func(ctx context.Context) error {
			return call2(core.Members.AcceptInvitation(ctx, eve.client, stranger, token))
		},
		"decline": func(ctx context.Context) error {
			return call(core.Members.DeclineInvitation(ctx, eve.client, stranger, token))
		},
		"cancel an invitation": func(ctx context.Context) error {
			return core.Members.CancelInvitation(ctx, ann.client, owner, &account.Invitation{ID: uuid.New()})
		},
		"rename": func(ctx context.Context) error {
			return call(core.Members.RenameShared(ctx, ann.client, owner, "Store"))
		},
		"end": func(ctx context.Context) error { return core.Members.DeleteShared(ctx, ann.client, owner) },
		"create a key": func(ctx context.Context) error {
			return call2(core.Keys.Create(ctx, ann.client, owner, account.KeyRequest{Name: "more"}))
		},
		"update a key": func(ctx context.Context) error {
			return call(core.Keys.Update(ctx, ann.client, owner, key.ID, account.KeyChange{Enabled: new(bool)}))
		},
		"rotate a key": func(ctx context.Context) error {
			return call2(core.Keys.Rotate(ctx, ann.client, owner, key.ID, time.Hour))
		},
		"delete a key":     func(ctx context.Context) error { return core.Keys.Delete(ctx, ann.client, owner, key.ID) },
		"delete a webhook": func(ctx context.Context) error { return hooks.Delete(ctx, hooks.Person(ann.client, owner), uuid.New()) },
		"replay a webhook": func(ctx context.Context) error {
			return hooks.Replay(ctx, hooks.Person(ann.client, owner), uuid.New(), 0)
		},
		"test a webhook": func(ctx context.Context) error {
			return call(hooks.Test(ctx, hooks.Person(ann.client, owner), uuid.New(), feed.TypeWebhookTest))
		},
	}
	ofPerson := map[string]func(context.Context) error{
		"share": func(ctx context.Context) error {
			return call(core.Members.CreateShared(ctx, ann.client, owner, identity.SharedRequest{Name: "Two"}))
		},
		"revoke a session":    func(ctx context.Context) error { return core.Sessions.Revoke(ctx, ann.client, owner, uuid.New()) },
		"revoke all sessions": func(ctx context.Context) error { return call(core.Sessions.RevokeAll(ctx, ann.client, owner)) },
		"change the password": func(ctx context.Context) error {
			return call(core.Persons.ChangePassword(ctx, ann.client, owner, password, newPassword))
		},
		"end": func(ctx context.Context) error {
			client := ann.client
			client.Password = password
			return core.Persons.DeleteAccount(ctx, client, owner)
		},
		"sign in": func(ctx context.Context) error {
			return call(core.Persons.SignIn(ctx, ann.client, "ann@example.com", password))
		},
		"a write on an account": ofShop["rename"],
	}
	for _, c := range []struct {
		of     uuid.UUID
		writes map[string]func(context.Context) error
	}{{shop, ofShop}, {ann.id, ofPerson}} {
		ok(t, core.Store.InTx(t.Context(), postgres.TurnOf(c.of), func(ctx context.Context, _ identity.Tx) error {
			var all sync.WaitGroup
			for name, write := range c.writes {
				all.Go(func() { is(t, name, write(ctx), postgres.ErrTooManyWaiting) })
			}
			all.Wait()
			return nil
		}))
	}
}

// What a bound refuses does not wait for the account's row, which somebody else has locked.
func TestBounds_BeforeTheLock(t *testing.T) {
	t.Parallel()
	rooms := pgtest.New(t)
	core := newServiceOn(t, rooms, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	shop := ann.shares("Shop")
	token := ann.invites("bob@example.com", account.RoleDeveloper)
	for n := range account.MaxKeys {
		ok(t, call2(core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: fmt.Sprint(n)})))
	}
	pgtest.Exec(t, core.Store, `WITH made AS (INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at)
			SELECT gen_random_uuid(), n::text, n || '@example.net', '', now(), now() FROM generate_series(2, $1) AS n RETURNING id)
		INSERT INTO members (account_id, person_id, role, created_at) SELECT $2, id, 'viewer', now() FROM made`, account.MaxMembers, shop)
	owner, stranger := ann.principal(), bob.principal()
	lock := pgtest.Lock(t, rooms, "SELECT FROM accounts FOR UPDATE")
	_, _, err := core.Keys.Create(t.Context(), ann.client, owner, account.KeyRequest{Name: "one more"})
	is(t, "a key", err, account.ErrTooMany)
	is(t, "an invitation", call(core.Members.Invite(t.Context(), ann.client, owner, "dan@example.com", account.RoleViewer, false)), account.ErrTooManyMembers)
	is(t, "a member", call2(core.Members.AcceptInvitation(t.Context(), bob.client, stranger, token)), account.ErrTooManyMembers)
	ok(t, lock.Rollback())
}
