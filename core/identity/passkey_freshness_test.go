package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/passkeytest"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

// makesLiveKey is the error of a new live key by a client.
func (p somebody) makesLiveKey(client identity.Client) error {
	p.t.Helper()
	return call2(p.core.Keys.Create(p.t.Context(), client, p.principal(), account.KeyRequest{Name: "live", Environment: network.Live}))
}

// again is the same person in another browser, who has signed in as the function says.
func (p somebody) again(in *identity.SignedIn) somebody {
	p.token, p.in, p.client.Token = in.Token, in, in.Token
	return p
}

// ageConfirmations makes all confirmations older than ten minutes.
func ageConfirmations(t *testing.T, core *identity.Service) {
	t.Helper()
	pgtest.Exec(t, core.Store, `UPDATE sessions SET confirmed_at = now() - interval '11 minutes'`)
}

// Of a person with a passkey only that confirms: neither a new sign-in by password, nor the password itself.
func TestFreshness_Passkey(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann := signedIn(t, core, "ann@example.com")
	is(t, "a new session", ann.makesLiveKey(ann.client), nil)
	device := passkeytest.NewP256(t, site, siteHost)
	is(t, "the passkey", call(ann.adds(device)), nil)
	is(t, "the session that added it", ann.makesLiveKey(ann.client), nil)

	thief := ann.again(must(core.Persons.SignIn(t.Context(), identity.Client{IP: "203.0.113.9"}, "ann@example.com", password))(t))
	is(t, "a sign-in by password", thief.makesLiveKey(thief.client), identity.ErrPasskeyNeeded)
	is(t, "the password", thief.makesLiveKey(with(thief.client, password)), identity.ErrPasskeyNeeded)
	is(t, "the page with the password", core.Sessions.Confirm(t.Context(), with(thief.client, password), thief.principal()), identity.ErrPasskeyNeeded)
	is(t, "a test key", call2(core.Keys.Create(t.Context(), thief.client, thief.principal(), account.KeyRequest{Name: "test"})), nil)
	is(t, "the end of the account", core.Persons.DeleteAccount(t.Context(), with(thief.client, password), thief.principal()), identity.ErrPasskeyNeeded)
	is(t, "another passkey", call(core.Persons.StartRegistration(t.Context(), thief.client, thief.principal(), "", "")), identity.ErrPasskeyNeeded)
	is(t, "the passkey's end", core.Persons.DeletePasskey(t.Context(), thief.client, thief.principal(), must(core.Persons.Passkeys(t.Context(), ann.id))(t)[0].ID), identity.ErrPasskeyNeeded)
	is(t, "no password", core.Persons.UnlinkPassword(t.Context(), thief.client, thief.principal()), identity.ErrPasskeyNeeded)

	ageConfirmations(t, core)
	is(t, "an old confirmation", ann.makesLiveKey(ann.client), identity.ErrPasskeyNeeded)
	is(t, "what the person is asked for", core.Sessions.ConfirmationOf(ann.principal()), identity.ErrPasskeyNeeded)
	before := ann.principal().Session.ID
	is(t, "a confirmation", ann.confirms(device), nil)
	is(t, "after it", ann.makesLiveKey(ann.client), nil)
	equal(t, "the session", ann.principal().Session.ID, before)
	is(t, "the other session", thief.makesLiveKey(thief.client), identity.ErrPasskeyNeeded)

	there := ann.again(must(answerChallenge(t, core, identity.Client{IP: "203.0.113.8"}, nil, device))(t))
	is(t, "a sign-in with the passkey", there.makesLiveKey(there.client), nil)
	is(t, "the end of the account, confirmed", core.Persons.DeleteAccount(t.Context(), ann.client, ann.principal()), nil)
	equal(t, "passkeys of an account that has ended", pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM passkeys`), 0)
}

// The first passkey ends the person's other sessions, which were made with less, and a later one none.
func TestFinishRegistration_OtherSessions(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann := signedIn(t, core, "ann@example.com")
	signInAgain := func() somebody {
		return ann.again(must(core.Persons.SignIn(t.Context(), identity.Client{}, "ann@example.com", password))(t))
	}
	other := signInAgain()
	is(t, "the first passkey", call(ann.adds(passkeytest.NewP256(t, site, siteHost))), nil)
	if other.principal() != nil || ann.principal() == nil {
		t.Error("the first passkey does not end the other sessions, and them alone")
	}
	other = signInAgain()
	is(t, "the second passkey", call(ann.adds(passkeytest.NewP256(t, site, siteHost))), nil)
	if other.principal() == nil {
		t.Error("the second passkey ends other sessions")
	}
}

// Without a passkey the password confirms the session for the pages that follow, for ten minutes.
func TestConfirm_Password(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann := signedIn(t, core, "ann@example.com")
	age(t, core)
	is(t, "an old session", call(core.Persons.StartRegistration(t.Context(), ann.client, ann.principal(), "", "")), identity.ErrPasswordNeeded)
	is(t, "no password", core.Sessions.Confirm(t.Context(), ann.client, ann.principal()), identity.ErrPassword)
	is(t, "a wrong password", core.Sessions.Confirm(t.Context(), with(ann.client, "wrong"), ann.principal()), identity.ErrPassword)
	is(t, "still an old session", ann.makesLiveKey(ann.client), identity.ErrPasswordNeeded)
	is(t, "the password", core.Sessions.Confirm(t.Context(), with(ann.client, password), ann.principal()), nil)
	is(t, "a passkey", call(ann.adds(passkeytest.NewP256(t, site, siteHost))), nil)
}

// A session of the version before is as fresh as its age says.
func TestFreshness_SessionFromBefore(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	for ago, want := range map[string]error{"9 minutes": nil, "11 minutes": identity.ErrPasswordNeeded} {
		pgtest.Exec(t, core.Store, `UPDATE sessions SET created_at = now() - $1::interval, confirmed_at = NULL`, ago)
		is(t, ago, ann.makesLiveKey(ann.client), want)
	}
}

// A reset of the password and another address leave the passkeys: whoever has the mailbox has both.
func TestPasskey_SurvivesTheMailbox(t *testing.T) {
	t.Parallel()
	core := newMailing(t, withPasskeys)
	ann := core.verified(t, "ann@example.com")
	device := passkeytest.NewP256(t, site, siteHost)
	is(t, "the passkey", call(ann.adds(device)), nil)
	is(t, "the request", core.Persons.RequestPasswordReset(t.Context(), identity.Client{}, "ann@example.com", ""), nil)
	must(core.Persons.ResetPassword(t.Context(), identity.Client{}, identity.ResetRequest{Token: core.token(t), NewPassword: "the thief's own", UnlinkAccounts: true}))(t)
	thief := ann.again(must(core.Persons.SignIn(t.Context(), identity.Client{IP: "203.0.113.9"}, "ann@example.com", "the thief's own"))(t))
	is(t, "a live key of the thief", thief.makesLiveKey(with(thief.client, "the thief's own")), identity.ErrPasskeyNeeded)
	is(t, "another address", core.Persons.ChangeEmail(t.Context(), with(thief.client, "the thief's own"), thief.principal(), "thief@example.com", ""), identity.ErrPasskeyNeeded)
	there := ann.again(must(answerChallenge(t, core.Service, identity.Client{}, nil, device))(t))
	is(t, "a live key of the person", there.makesLiveKey(there.client), nil)
}

func TestDeletePasskey(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	first := must(ann.adds(passkeytest.NewP256(t, site, siteHost)))(t)
	second := must(ann.adds(passkeytest.NewP256(t, site, siteHost)))(t)
	remove := func(p somebody, id uuid.UUID) error {
		return core.Persons.DeletePasskey(t.Context(), p.client, p.principal(), id)
	}
	rename := func(p somebody, id uuid.UUID, name string) error {
		return call(core.Persons.RenamePasskey(t.Context(), p.client, p.principal(), id, name))
	}
	is(t, "another's", remove(bob, first.ID), account.ErrNoPasskey)
	is(t, "another's name", rename(bob, first.ID, "mine"), account.ErrNoPasskey)
	ageConfirmations(t, core)
	is(t, "a name in an old session", rename(ann, first.ID, "desk"), nil)
	isInvalid(t, "name", rename(ann, first.ID, " "))
	is(t, "an old session", remove(ann, first.ID), identity.ErrPasskeyNeeded)
	pgtest.Exec(t, core.Store, `UPDATE sessions SET confirmed_at = now()`)
	is(t, "one of two", remove(ann, first.ID), nil)
	is(t, "the same again", remove(ann, first.ID), account.ErrNoPasskey)
	is(t, "no password", core.Persons.UnlinkPassword(t.Context(), ann.client, ann.principal()), nil)
	is(t, "no password again", core.Persons.UnlinkPassword(t.Context(), ann.client, ann.principal()), account.ErrIdentityNotFound)
	is(t, "the last way in", remove(ann, second.ID), account.ErrLastWayIn)
	pgtest.Exec(t, core.Store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		VALUES ('eip155', '0x70997970c51812dc3a010c7d01b50e0d17dc79c8', $1, now())`, ann.id)
	wallet := account.Identity{Issuer: "eip155", Subject: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"}
	is(t, "the wallet, beside a passkey", core.Persons.Unlink(t.Context(), ann.client, ann.principal(), wallet), nil)
	pgtest.Exec(t, core.Store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		VALUES ('eip155', '0x70997970c51812dc3a010c7d01b50e0d17dc79c8', $1, now())`, ann.id)
	is(t, "the last passkey, beside a wallet", remove(ann, second.ID), nil)
	is(t, "the password without a passkey", core.Persons.UnlinkPassword(t.Context(), bob.client, bob.principal()), account.ErrLastWayIn)
	equal(t, "the audit log", pgtest.LookUp[string](t, core.Store,
		`SELECT string_agg(action || ' ' || detail, ', ' ORDER BY id) FROM audit_log WHERE action LIKE 'passkey%'`),
		"passkey_added laptop, passkey_added laptop, passkey_deleted desk, passkey_deleted laptop")
}

// Where the operator requires a second factor, a person without one makes no live key and no owner; existing keys stay as they are.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	before := newServiceOn(t, store, withPasswords(t), withPasskeys)
	ann, bob := signedIn(t, before, "ann@example.com"), signedIn(t, before, "bob@example.com")
	key := must2(before.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "live", Environment: network.Live}))(t)
	pgtest.Exec(t, store, `UPDATE api_keys SET enabled = false`)
	pgtest.Exec(t, store, `INSERT INTO members (account_id, person_id, role, created_at) VALUES ($1, $2, 'viewer', now())`, ann.id, bob.id)
	core := newServiceOn(t, store, withPasswords(t), withPasskeys, func(c *identity.Config) { c.SecondFactor = true })
	ann.core, bob.core = core, core
	hooks := webhooks.NewService(store.Webhooks, nil, core)
	hook := &webhooks.Endpoint{ID: uuid.New(), AccountID: ann.id, Environment: network.Live, URL: "https://example.com", Enabled: true}
	writes := map[string]func() error{
		"a live key": func() error { return ann.makesLiveKey(ann.client) },
		"another live key": func() error {
			return call2(core.Keys.Rotate(t.Context(), ann.client, ann.principal(), key.ID, time.Hour))
		},
		"an enabled live key": func() error {
			return call(core.Keys.Update(t.Context(), ann.client, ann.principal(), key.ID, account.KeyChange{Enabled: new(true)}))
		},
		"a live webhook": func() error {
			return hooks.Create(t.Context(), hooks.Person(ann.client, ann.principal()), hook, [32]byte{})
		},
		"an owner": func() error {
			return call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), bob.id, account.RoleOwner))
		},
		"an invited owner": func() error {
			return call(core.Members.Invite(t.Context(), ann.client, ann.principal(), "eve@example.com", account.RoleOwner, true))
		},
	}
	for what, write := range writes {
		is(t, what+" without a passkey", write(), identity.ErrSecondFactor)
	}
	is(t, "the password", ann.makesLiveKey(with(ann.client, password)), identity.ErrSecondFactor)
	for what, err := range map[string]error{
		"a test key":          call2(core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "test"})),
		"a developer":         call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), bob.id, account.RoleDeveloper)),
		"a disabled live key": call(core.Keys.Update(t.Context(), ann.client, ann.principal(), key.ID, account.KeyChange{Enabled: new(false)})),
	} {
		is(t, what+" without a passkey", err, nil)
	}
	passkey := must(ann.adds(passkeytest.NewP256(t, site, siteHost)))(t)
	for _, what := range []string{"an enabled live key", "a live key", "another live key", "an owner", "an invited owner"} {
		is(t, what+" with a passkey", writes[what](), nil)
	}
	is(t, "the last passkey of an owner of live keys", core.Persons.DeletePasskey(t.Context(), ann.client, ann.principal(), passkey.ID), identity.ErrSecondFactor)
	pgtest.Exec(t, store, `UPDATE api_keys SET deleted_at = now(), enabled = false`)
	is(t, "the last passkey of an owner without live keys", core.Persons.DeletePasskey(t.Context(), ann.client, ann.principal(), passkey.ID), nil)
}

// With acr values a sign-in is a second factor for ten minutes after the person authenticated, and not fresh without that time.
func TestFinishOIDC_ACR(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	store := pgtest.New(t)
	withACR := newServiceOn(t, store, withPasswords(t), func(c *identity.Config) {
		c.SecondFactor = true
		i.acr = "urn:example:mfa phr"
		i.config(c)
	})
	to, _, err := withACR.Persons.StartOIDC(t.Context(), identity.Client{})
	ok(t, err)
	says(t, to, []string{"acr_values=urn%3Aexample%3Amfa+phr", "max_age=600"}, nil)
	now := time.Now().Unix()
	for name, c := range map[string]struct {
		claims map[string]any
		want   error
	}{
		"a second factor":             {map[string]any{"acr": "phr", "auth_time": now}, nil},
		"one of nine minutes ago":     {map[string]any{"acr": "urn:example:mfa", "auth_time": now - 540}, nil},
		"one of eleven minutes ago":   {map[string]any{"acr": "phr", "auth_time": now - 660}, identity.ErrSignInNeeded},
		"one without its time":        {map[string]any{"acr": "phr"}, identity.ErrSignInNeeded},
		"a password":                  {map[string]any{"acr": "pwd", "auth_time": now}, identity.ErrSecondFactor},
		"no acr":                      {map[string]any{"auth_time": now}, identity.ErrSecondFactor},
		"a part of one of the values": {map[string]any{"acr": "urn:example", "auth_time": now}, identity.ErrSecondFactor},
		"both values as one":          {map[string]any{"acr": "urn:example:mfa phr", "auth_time": now}, identity.ErrSecondFactor},
	} {
		c.claims["sub"], c.claims["email"] = name, strings.ReplaceAll(name, " ", "-")+"@example.com"
		in, err := i.signIn(t, withACR, c.claims)
		ok(t, err)
		p := somebody{t, withACR, in.Token, in, in.Account.ID, identity.Client{Token: in.Token, Person: in.Account.ID}}
		is(t, name, p.makesLiveKey(p.client), c.want)
	}
	without := newServiceOn(t, store, withPasswords(t), func(c *identity.Config) { i.acr = ""; i.config(c) })
	to, _, err = without.Persons.StartOIDC(t.Context(), identity.Client{})
	ok(t, err)
	says(t, to, nil, []string{"acr_values", "max_age"})
	in, err := i.signIn(t, without, map[string]any{"acr": "phr", "auth_time": now - 660})
	ok(t, err)
	equal(t, "the factor without acr values", in.Session.Factor, account.FactorNone)
	p := somebody{t, without, in.Token, in, in.Account.ID, identity.Client{Token: in.Token, Person: in.Account.ID}}
	is(t, "a sign-in without acr values", p.makesLiveKey(p.client), nil)
}

// Recovery by an operator ends the passkeys and the sessions, and tells the person.
func TestRemovePasskeys(t *testing.T) {
	t.Parallel()
	core := newMailing(t, withPasskeys)
	ann := core.verified(t, "ann@example.com")
	device := passkeytest.NewP256(t, site, siteHost)
	is(t, "the passkey", call(ann.adds(device)), nil)
	core.told(t)
	remove := func(email string) (int64, error) {
		return core.Store.RemovePasskeys(t.Context(), email, account.NoticeToPerson, account.Actor{Operator: true}, core.Store.Now())
	}
	equal(t, "removed", must(remove("ann@example.com"))(t), 1)
	is(t, "nobody", call(remove("nobody@example.com")), account.ErrNotFound)
	if ann.principal() != nil {
		t.Error("the session goes on")
	}
	is(t, "the passkey", call(answerChallenge(t, core.Service, identity.Client{}, nil, device)), identity.ErrUnknownPasskey)
	core.MailQueued()
	equal(t, "the notice", core.told(t), []string{"ann@example.com: Those who run intents.example have removed all passkeys of your account, and ended all of its sessions."})
	equal(t, "the audit log", pgtest.LookUp[string](t, core.Store, `SELECT actor || ' ' || detail FROM audit_log WHERE action = 'passkeys_removed'`),
		"operator 1; all sessions ended")
}
