package identity_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// somebody is a person who is signed in.
type somebody struct {
	t      *testing.T
	core   *identity.Service
	token  string
	in     *identity.SignedIn
	id     uuid.UUID
	client identity.Client
}

func signedIn(t *testing.T, core *identity.Service, email string) somebody {
	t.Helper()
	client := identity.Client{IP: "203.0.113.7", UserAgent: email}
	in := signUp(t, withoutMail(core), client, email)
	client.Person = in.Account.ID
	return somebody{t, core, in.Token, in, in.Account.ID, client}
}

// acting is what the person's next request finds, nil for a session that has ended.
func (p somebody) principal() *identity.Principal {
	p.t.Helper()
	a, err := p.core.Sessions.Principal(p.t.Context(), p.token)
	if err != nil && !errors.Is(err, identity.ErrSignedOut) {
		p.t.Fatal(err)
	}
	return a
}

// shares makes a shared account and acts on it.
func (p somebody) shares(name string) uuid.UUID {
	p.t.Helper()
	return must(p.core.Members.CreateShared(p.t.Context(), p.client, p.principal(), identity.SharedRequest{Name: name}))(p.t).ID
}

// invites invites somebody to the account that the person acts on, and returns the token of the link that the inviter is shown.
func (p somebody) invites(email string, role account.Role) string {
	p.t.Helper()
	return invitationToken(p.t, must(p.core.Members.Invite(p.t.Context(), p.client, p.principal(), email, role, true))(p.t).Link)
}

func invitationToken(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || link != "" && !strings.HasPrefix(link, "http://intents.example/console/invitation?token=") {
		t.Fatalf("the link %q, %v", link, err)
	}
	return u.Query().Get("token")
}

func (p somebody) accepts(token string) error {
	p.t.Helper()
	_, _, err := p.core.Members.AcceptInvitation(p.t.Context(), p.client, p.principal(), token)
	return err
}

// What each role may do is this table, and nothing that is no need is allowed to anybody.
func TestRoles(t *testing.T) {
	t.Parallel()
	for role, want := range map[account.Role]string{
		account.RoleOwner: "anyone person read develop manage", account.RoleDeveloper: "anyone person read develop", account.RoleViewer: "anyone person read",
		"": "anyone", "admin": "anyone",
	} {
		var may []string
		for need, name := range []string{"nothing", "anyone", "person", "read", "develop", "manage", "more"} {
			a := &identity.Principal{Role: role}
			if a.May(identity.Need(need)) {
				may = append(may, name)
			}
			if refused := errors.Is(a.Check(identity.Need(need)), identity.ErrRole); refused == a.May(identity.Need(need)) {
				t.Errorf("%q and %s: Check and May differ", role, name)
			}
		}
		equal(t, fmt.Sprintf("%q", role), strings.Join(may, " "), want)
	}
}

// Where no mail is sent the link alone accepts, once. A member acts on the account with the role of the moment, and a member who is removed is
// signed out of it at once; the keys stay. The log names each.
func TestMembers(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob, eve := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com"), signedIn(t, core, "eve@example.com")
	shop := ann.shares("Shop")
	token := ann.invites("Bob@Example.com", account.RoleDeveloper)
	if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM invitations AS i WHERE strpos(i::text, $1) > 0`, token); n != 0 || len(token) != 43 {
		t.Errorf("the token %q is stored %d times", token, n)
	}
	is(t, "a guess", bob.accepts(token[1:]+"A"), account.ErrNoInvitation)
	is(t, "bob", bob.accepts(token), nil)
	is(t, "a second use", eve.accepts(token), account.ErrNoInvitation)
	if a := bob.principal(); a.Account.ID != shop || a.Role != account.RoleDeveloper || a.Person.ID != bob.id {
		t.Errorf("bob acts on %+v as %s", a.Account, a.Role)
	}
	key := must2(core.Keys.Create(t.Context(), bob.client, bob.principal(), account.KeyRequest{Name: "ci"}))(t)
	is(t, "another role", call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), bob.id, account.RoleViewer)), nil)
	if a := bob.principal(); a.Role != account.RoleViewer {
		t.Errorf("bob's next request has the role %s", a.Role)
	}
	is(t, "a viewer on the account", call(core.Sessions.On(t.Context(), bob.principal(), shop, identity.Develop)), identity.ErrRole)
	is(t, "a stranger", call(core.Sessions.On(t.Context(), eve.principal(), shop, identity.Read)), account.ErrNotMember)
	is(t, "a stranger acts", core.Members.Act(t.Context(), eve.client, eve.principal(), shop), account.ErrNotMember)
	is(t, "nobody's role", call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), eve.id, account.RoleViewer)), account.ErrNoSuchMember)
	is(t, "the last owner demotes herself", call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), ann.id, account.RoleViewer)), account.ErrLastOwner)
	is(t, "the last owner leaves", call(core.Members.Leave(t.Context(), ann.client, ann.principal())), account.ErrLastOwner)
	is(t, "the last owner deletes herself", core.Persons.DeleteAccount(t.Context(), with(ann.client, password), ann.principal()), account.ErrLastOwner)

	is(t, "removed", call(core.Members.Remove(t.Context(), ann.client, ann.principal(), bob.id)), nil)
	if a := bob.principal(); a != nil {
		t.Errorf("who was removed is still signed in, on %s", a.Account.Name)
	}
	if keys, err := core.Store.Keys(t.Context(), shop); err != nil || len(keys) != 1 || keys[0].ID != key.ID {
		t.Errorf("the account's keys are %v, %v", keys, err)
	}
	var lines []string
	for _, e := range auditEntries(t, core, shop, 100) {
		lines = append([]string{fmt.Sprintf("%s by %s: %s", e.Action, e.PersonEmail, e.Detail)}, lines...)
	}
	want := []string{
		"account_shared by ann@example.com: ", "member_invited by ann@example.com: bob@example.com as developer",
		"member_joined by bob@example.com: bob@example.com as developer", "key_created by bob@example.com: test key, never expires",
		"member_changed by ann@example.com: bob@example.com: viewer, was developer", "member_removed by ann@example.com: bob@example.com, was viewer",
	}
	equal(t, "the log", lines, want)
}

// In an account of their own people stay owners, also beside other owners.
func TestMembers_Holder(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleOwner)), nil)
	is(t, "demoted", call(core.Members.ChangeRole(t.Context(), bob.client, bob.principal(), ann.id, account.RoleViewer)), account.ErrHolder)
	is(t, "removed", call(core.Members.Remove(t.Context(), bob.client, bob.principal(), ann.id)), account.ErrHolder)
	is(t, "left", call(core.Members.Leave(t.Context(), ann.client, ann.principal())), account.ErrHolder)
	is(t, "ended as a shared one", core.Members.DeleteShared(t.Context(), with(bob.client, password), bob.principal()), account.ErrNotShared)
	// The invitations of an owner end with the ownership.
	token := bob.invites("back-door@example.com", account.RoleOwner)
	is(t, "bob demoted", call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), bob.id, account.RoleViewer)), nil)
	is(t, "the back door", signedIn(t, core, "back-door@example.com").accepts(token), account.ErrNoInvitation)
	is(t, "bob leaves", call(core.Members.Leave(t.Context(), bob.client, bob.principal())), nil)
	if a := bob.principal(); a == nil || a.Account.ID != bob.id || a.Role != account.RoleOwner {
		t.Errorf("who leaves acts on %+v", a)
	}
	is(t, "ended", core.Persons.DeleteAccount(t.Context(), with(ann.client, password), ann.principal()), nil)
}

// Of two owners who leave at once, or remove each other, one stays.
func TestMembers_LastOwner(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	for round := range 8 {
		shop := ann.shares(fmt.Sprint("Shop ", round))
		pgtest.Exec(t, core.Store, `INSERT INTO members (account_id, person_id, role, created_at) VALUES ($1, $2, 'owner', now())`, shop, bob.id)
		is(t, "bob", core.Members.Act(t.Context(), bob.client, bob.principal(), shop), nil)
		onAnn, onBob := ann.principal(), bob.principal()
		step := func(p somebody, on *identity.Principal, other somebody) error {
			if round%2 == 0 {
				return call(core.Members.Leave(t.Context(), p.client, on))
			}
			return call(core.Members.ChangeRole(t.Context(), p.client, on, other.id, account.RoleViewer))
		}
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() { errs[0] = step(ann, onAnn, bob) })
		both.Go(func() { errs[1] = step(bob, onBob, ann) })
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("round %d: %v and %v", round, errs[0], errs[1])
		}
		if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM members WHERE account_id = $1 AND role = 'owner'`, shop); n != 1 {
			t.Errorf("round %d: %d owners", round, n)
		}
		pgtest.Exec(t, core.Store, `UPDATE sessions SET acting_account_id = NULL`)
		pgtest.Exec(t, core.Store, `UPDATE accounts SET deleted_at = now() WHERE id = $1`, shop)
	}
}

// Accounts have a bound of members and invitations, people one of shared accounts, and accounts one of invitations a day.
func TestMembers_Bounds(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	for range account.MaxSharedAccounts {
		ann.shares("Shop")
	}
	is(t, "one more account", call(core.Members.CreateShared(t.Context(), ann.client, ann.principal(), identity.SharedRequest{Name: "Shop"})), account.ErrTooManyShared)
	invite := func(n int) error {
		return call(core.Members.Invite(t.Context(), ann.client, ann.principal(), fmt.Sprintf("%d@example.com", n), account.RoleViewer, false))
	}
	shop := ann.principal().Account.ID
	pgtest.Exec(t, core.Store, `INSERT INTO invitations (id, account_id, inviter_id, email, role, mailed, expires_at, created_at)
		SELECT gen_random_uuid(), $1, $2, n || '@example.org', 'viewer', true, now() + interval '1 day', now() FROM generate_series(1, 98) n`, shop, ann.id)
	is(t, "the last of all", invite(1), nil)
	is(t, "one too many", invite(2), account.ErrTooManyMembers)
	pgtest.Exec(t, core.Store, `DELETE FROM invitations`)
	last := error(nil)
	for n := range 60 {
		if last = invite(n); last != nil {
			break
		}
	}
	isLimited(t, "60 invitations a day", last, true)
}
