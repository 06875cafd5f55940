package identity_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/passkeytest"
	"intents.internal/core/pgtest"
)

// site is where newPasskeyService is.
const (
	site     = "https://intents.example"
	siteHost = "intents.example"
)

// withPasskeys has newService serve at a URL where browsers know passkeys.
func withPasskeys(c *identity.Config) { c.PublicURL = site }

// options are options as the browser gets them.
func options(t *testing.T, o any) []byte {
	t.Helper()
	return must(json.Marshal(o))(t)
}

// begins begins the registration of a passkey.
func (p somebody) begins() *identity.Registration {
	p.t.Helper()
	return must(p.core.Persons.StartRegistration(p.t.Context(), p.client, p.principal(), "", ""))(p.t)
}

// adds registers the passkey of an authenticator.
func (p somebody) adds(a *passkeytest.Authenticator) (*account.Passkey, error) {
	p.t.Helper()
	begun := p.begins()
	response := a.Register(p.t, options(p.t, begun.Options))
	return p.core.Persons.FinishRegistration(p.t.Context(), p.client, p.principal(), begun.Cookie, response, "laptop")
}

// confirms confirms the session with a passkey.
func (p somebody) confirms(a *passkeytest.Authenticator) error {
	p.t.Helper()
	return call(answerChallenge(p.t, p.core, p.client, p.principal(), a))
}

// answerChallenge signs in with a passkey, or confirms the session of a principal.
func answerChallenge(
	t *testing.T, core *identity.Service, client identity.Client, p *identity.Principal, a *passkeytest.Authenticator,
) (*identity.SignedIn, error) {
	t.Helper()
	begun := must(core.Persons.StartAuthentication(t.Context(), client, p))(t)
	return core.Persons.FinishAuthentication(t.Context(), client, p, begun.Cookie, a.Authenticate(t, options(t, begun.Options)))
}

func TestPasskey_RegisterAndSignIn(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(testing.TB, string, string) *passkeytest.Authenticator{
		"Ed25519": passkeytest.NewEd25519, "P-256": passkeytest.NewP256,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newService(t, withPasswords(t), withPasskeys)
			ann := signedIn(t, core, "ann@example.com")
			device := create(t, site, siteHost)
			added := must(ann.adds(device))(t)
			equal(t, "the passkey", *added, account.Passkey{
				ID: added.ID, PersonID: ann.id, CredentialID: device.ID, PublicKey: added.PublicKey, SignCount: 1, Transports: []string{"internal", "hybrid"},
				AAGUID: uuid.MustParse(passkeytest.AAGUID), Name: "laptop", CreatedAt: added.CreatedAt,
			})
			in := must(answerChallenge(t, core, identity.Client{IP: "203.0.113.8"}, nil, device))(t)
			if in.Account.ID != ann.id || in.Session.Factor != account.FactorPasskey || in.Token == "" || in.Device != "" {
				t.Errorf("signed in as %+v", in)
			}
			if count := pgtest.LookUp[int](t, core.Store, `SELECT sign_count FROM passkeys WHERE used_at IS NOT NULL`); count != 2 {
				t.Errorf("the sign count is %d", count)
			}
			first, second := ann.begins().Options.User.ID, ann.begins().Options.User.ID
			equal(t, "the user handle", string(options(t, second)), string(options(t, first)))
		})
	}
}

// Whether a passkey is synchronized is read at each use, and an authenticator that does not count may be used any number of times.
func TestPasskey_SyncedWithoutCount(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann := signedIn(t, core, "ann@example.com")
	device := passkeytest.NewP256(t, site, siteHost)
	device.Counts, device.Synced = false, true
	added := must(ann.adds(device))(t)
	pgtest.Exec(t, core.Store, `UPDATE passkeys SET backed_up = false`)
	for range 2 {
		is(t, "a use", call(answerChallenge(t, core, identity.Client{}, nil, device)), nil)
	}
	listed := must(core.Persons.Passkeys(t.Context(), ann.id))(t)
	if len(listed) != 1 || listed[0].ID != added.ID || listed[0].SignCount != 0 || !listed[0].BackupEligible || !listed[0].BackedUp {
		t.Errorf("the passkeys are %+v", listed)
	}
}

func TestFinishRegistration_Refused(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	for name, change := range map[string]func(*passkeytest.Authenticator){
		"another origin":                    func(a *passkeytest.Authenticator) { a.Origin = "https://intents.example.net" },
		"plain http":                        func(a *passkeytest.Authenticator) { a.Origin = "http://intents.example" },
		"another port":                      func(a *passkeytest.Authenticator) { a.Origin = "https://intents.example:8443" },
		"another relying party":             func(a *passkeytest.Authenticator) { a.RPID = "example" },
		"another challenge":                 func(a *passkeytest.Authenticator) { a.Challenge = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
		"the type of a sign-in":             func(a *passkeytest.Authenticator) { a.Type = "webauthn.get" },
		"no user verification":              func(a *passkeytest.Authenticator) { a.Unverified = true },
		"an algorithm that was not offered": func(a *passkeytest.Authenticator) { a.Algorithm = -259 },
		"an attestation that nobody asked for": func(a *passkeytest.Authenticator) {
			a.Format, a.Statement = "packed", map[string]any{"alg": -7, "sig": []byte("signature")}
		},
		"none with a statement": func(a *passkeytest.Authenticator) { a.Statement = map[string]any{"alg": -7} },
	} {
		device := passkeytest.NewP256(t, site, siteHost)
		change(device)
		is(t, name, call(ann.adds(device)), identity.ErrRegistration)
	}
	finish := func(p somebody, cookie string, response []byte) error {
		return call(core.Persons.FinishRegistration(t.Context(), p.client, p.principal(), cookie, response, ""))
	}
	device := passkeytest.NewP256(t, site, siteHost)
	begun := ann.begins()
	response := device.Register(t, options(t, begun.Options))
	is(t, "no cookie", finish(ann, "", response), identity.ErrChallenge)
	is(t, "another's challenge", finish(bob, begun.Cookie, response), identity.ErrRegistrationOfOther)
	is(t, "a challenge that another has taken", finish(ann, begun.Cookie, response), identity.ErrChallenge)

	nobody := must(core.Persons.StartAuthentication(t.Context(), ann.client, nil))(t)
	is(t, "the challenge of a sign-in", finish(ann, nobody.Cookie, response), identity.ErrRegistrationOfOther)

	begun = ann.begins()
	pgtest.Exec(t, core.Store, `UPDATE sign_in_challenges SET expires_at = now() - interval '1 second'`)
	is(t, "an expired challenge", finish(ann, begun.Cookie, device.Register(t, options(t, begun.Options))), identity.ErrChallenge)

	is(t, "no JSON", finish(ann, ann.begins().Cookie, []byte(`{`)), identity.ErrRegistration)
	is(t, "a passkey", call(ann.adds(device)), nil)
	is(t, "the same once more", call(ann.adds(device)), account.ErrPasskeyRegistered)
	is(t, "that of another person", call(bob.adds(device)), account.ErrPasskeyRegistered)
	for n := 1; n < account.MaxPasskeys; n++ {
		is(t, "another passkey", call(ann.adds(passkeytest.NewEd25519(t, site, siteHost))), nil)
	}
	is(t, "the eleventh", call(ann.adds(passkeytest.NewEd25519(t, site, siteHost))), account.ErrTooManyPasskeys)
	if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM passkeys`); n != account.MaxPasskeys {
		t.Errorf("%d passkeys are stored", n)
	}
}

func TestFinishAuthentication_Refused(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	device, bobs := passkeytest.NewP256(t, site, siteHost), passkeytest.NewEd25519(t, site, siteHost)
	is(t, "ann's passkey", call(ann.adds(device)), nil)
	is(t, "bob's passkey", call(bob.adds(bobs)), nil)
	for name, change := range map[string]func(*passkeytest.Authenticator){
		"another origin":               func(a *passkeytest.Authenticator) { a.Origin = "https://evil.example" },
		"another relying party":        func(a *passkeytest.Authenticator) { a.RPID = "evil.example" },
		"another challenge":            func(a *passkeytest.Authenticator) { a.Challenge = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
		"the type of registration":     func(a *passkeytest.Authenticator) { a.Type = "webauthn.create" },
		"no user verification":         func(a *passkeytest.Authenticator) { a.Unverified = true },
		"another person's handle":      func(a *passkeytest.Authenticator) { a.Handle = bobs.Handle },
		"no handle":                    func(a *passkeytest.Authenticator) { a.Handle = nil },
		"another passkey's id":         func(a *passkeytest.Authenticator) { a.ID = bobs.ID },
		"a passkey that is now synced": func(a *passkeytest.Authenticator) { a.Synced = true },
	} {
		forged := *device
		change(&forged)
		forged.SignCount += 100
		is(t, name, call(answerChallenge(t, core, identity.Client{}, nil, &forged)), identity.ErrAuthentication)
	}
	stranger := passkeytest.NewP256(t, site, siteHost)
	stranger.Handle = device.Handle
	is(t, "an unknown passkey", call(answerChallenge(t, core, identity.Client{}, nil, stranger)), identity.ErrUnknownPasskey)
	is(t, "another person's passkey as confirmation", call(answerChallenge(t, core, ann.client, ann.principal(), bobs)), identity.ErrAuthentication)

	begun := must(core.Persons.StartAuthentication(t.Context(), identity.Client{}, nil))(t)
	response := device.Authenticate(t, options(t, begun.Options))
	finish := func(cookie string, response []byte) error {
		return call(core.Persons.FinishAuthentication(t.Context(), identity.Client{}, nil, cookie, response))
	}
	is(t, "no cookie", finish("", response), identity.ErrChallenge)
	is(t, "no JSON", finish(begun.Cookie, []byte(`[]`)), identity.ErrAuthentication)
	is(t, "a challenge that was taken", finish(begun.Cookie, response), identity.ErrChallenge)
	if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM passkeys WHERE used_at IS NOT NULL`); n != 0 {
		t.Errorf("%d passkeys were used", n)
	}
	pgtest.Exec(t, core.Store, `UPDATE accounts SET disabled_at = now() WHERE id = $1`, ann.id)
	is(t, "a disabled person", call(answerChallenge(t, core, identity.Client{}, nil, device)), identity.ErrAccountDisabled)
}

// A sign count that does not rise is that of a copy: it is refused, and the person is told.
func TestFinishAuthentication_SignCount(t *testing.T) {
	t.Parallel()
	core := newMailing(t, withPasskeys)
	ann := core.verified(t, "ann@example.com")
	device := passkeytest.NewP256(t, site, siteHost)
	is(t, "the passkey", call(ann.adds(device)), nil)
	equal(t, "the notice of the passkey", core.told(t), []string{"ann@example.com: Your account at intents.example has a new passkey."})
	thief := *device
	for range 2 {
		is(t, "a use", call(answerChallenge(t, core.Service, identity.Client{}, nil, device)), nil)
	}
	is(t, "a copy", call(answerChallenge(t, core.Service, identity.Client{IP: "203.0.113.9"}, nil, &thief)), identity.ErrAuthentication)
	is(t, "a copy that confirms", call(answerChallenge(t, core.Service, ann.client, ann.principal(), &thief)), identity.ErrAuthentication)
	thief.SignCount = 0
	thief.Counts = false
	is(t, "a copy that does not count", call(answerChallenge(t, core.Service, identity.Client{}, nil, &thief)), identity.ErrAuthentication)
	equal(t, "the audit log", pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM audit_log WHERE action = 'passkey_refused' AND detail = 'laptop'`), 3)
	const told = "ann@example.com: A passkey of your account at intents.example was refused, as its count fell: a copy of it may have been used."
	equal(t, "the notices", core.told(t), []string{told, told, told})
	is(t, "the passkey itself", call(answerChallenge(t, core.Service, identity.Client{}, nil, device)), nil)
}

// Two cores take a challenge once, and one of two responses with the same sign count.
func TestPasskey_TwinsOverTwoCores(t *testing.T) {
	t.Parallel()
	first := newService(t, withPasswords(t), withPasskeys)
	second := newServiceOn(t, roomsOf(first), withPasswords(t), withPasskeys)
	ann := signedIn(t, first, "ann@example.com")
	device := passkeytest.NewEd25519(t, site, siteHost)
	is(t, "the passkey", call(ann.adds(device)), nil)
	for range 10 {
		begun := must(first.Persons.StartAuthentication(t.Context(), identity.Client{}, nil))(t)
		response := device.Authenticate(t, options(t, begun.Options))
		outcomes := twins(func(core *identity.Service) error {
			return call(core.Persons.FinishAuthentication(t.Context(), identity.Client{}, nil, begun.Cookie, response))
		}, first, second)
		if done(outcomes) != 1 || !errors.Is(errors.Join(outcomes...), identity.ErrChallenge) {
			t.Errorf("twins of a challenge: %v", outcomes)
		}
	}
	twin := *device
	begunFirst, begunSecond := must(first.Persons.StartAuthentication(t.Context(), identity.Client{}, nil))(t), must(second.Persons.StartAuthentication(t.Context(), identity.Client{}, nil))(t)
	responses := map[*identity.Service][]byte{
		first: device.Authenticate(t, options(t, begunFirst.Options)), second: twin.Authenticate(t, options(t, begunSecond.Options)),
	}
	cookies := map[*identity.Service]string{first: begunFirst.Cookie, second: begunSecond.Cookie}
	outcomes := twins(func(core *identity.Service) error {
		return call(core.Persons.FinishAuthentication(t.Context(), identity.Client{}, nil, cookies[core], responses[core]))
	}, first, second)
	if done(outcomes) != 1 || !errors.Is(errors.Join(outcomes...), identity.ErrAuthentication) {
		t.Errorf("twins of a sign count: %v", outcomes)
	}
	begun := ann.begins()
	registration := passkeytest.NewP256(t, site, siteHost).Register(t, options(t, begun.Options))
	outcomes = twins(func(core *identity.Service) error {
		return call(core.Persons.FinishRegistration(t.Context(), ann.client, ann.principal(), begun.Cookie, registration, ""))
	}, first, second)
	if done(outcomes) != 1 || !errors.Is(errors.Join(outcomes...), identity.ErrChallenge) {
		t.Errorf("twins of a registration: %v", outcomes)
	}
}

// twins are the outcomes of one operation on several cores at once.
func twins(do func(*identity.Service) error, cores ...*identity.Service) []error {
	outcomes := make([]error, len(cores))
	var all sync.WaitGroup
	for n, core := range cores {
		all.Go(func() { outcomes[n] = do(core) })
	}
	all.Wait()
	return outcomes
}

// done is how many operations have succeeded.
func done(outcomes []error) (n int) {
	for _, err := range outcomes {
		if err == nil {
			n++
		}
	}
	return n
}

// What is answered without a session does not depend on who has passkeys; somebody who is signed in is told the own ones.
func TestStartAuthentication_Secrecy(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), withPasskeys)
	ann := signedIn(t, core, "ann@example.com")
	device := passkeytest.NewP256(t, site, siteHost)
	is(t, "the passkey", call(ann.adds(device)), nil)
	without := must(core.Persons.StartAuthentication(t.Context(), identity.Client{}, nil))(t).Options
	without.Challenge = nil
	equal(t, "without a session", string(options(t, without)), `{"challenge":null,"timeout":60000,"rpId":"intents.example","userVerification":"required"}`)
	within := must(core.Persons.StartAuthentication(t.Context(), ann.client, ann.principal()))(t).Options
	if len(within.AllowedCredentials) != 1 || string(within.AllowedCredentials[0].CredentialID) != string(device.ID) {
		t.Errorf("with a session: %+v", within)
	}
}

func TestPasskeys_PublicURL(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	for url, on := range map[string]bool{
		"https://intents.example": true, "https://intents.example:8443": true, "http://localhost:8080": true, "http://console.localhost": true,
		"http://intents.example": false, "http://127.0.0.1:8080": false, "https://203.0.113.7": false, "https://[::1]:8443": false,
	} {
		core := newServiceOn(t, store, func(c *identity.Config) { c.PublicURL = url })
		if core.Persons.PasskeysOn() != on {
			t.Errorf("%s: passkeys are on is %v", url, core.Persons.PasskeysOn())
		}
	}
	core := newServiceOn(t, store, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	p := ann.principal()
	for what, err := range map[string]error{
		"register":      call(core.Persons.StartRegistration(t.Context(), ann.client, p, "", "")),
		"registered":    call(core.Persons.FinishRegistration(t.Context(), ann.client, p, "", nil, "")),
		"authenticate":  call(core.Persons.StartAuthentication(t.Context(), ann.client, nil)),
		"authenticated": call(core.Persons.FinishAuthentication(t.Context(), ann.client, nil, "", nil)),
		"list":          call(core.Persons.Passkeys(t.Context(), ann.id)),
		"rename":        call(core.Persons.RenamePasskey(t.Context(), ann.client, p, uuid.New(), "x")),
		"delete":        core.Persons.DeletePasskey(t.Context(), ann.client, p, uuid.New()),
	} {
		is(t, what, err, identity.ErrPasskeysOff)
	}
}
