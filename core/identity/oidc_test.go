package identity_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

func TestStartOIDC(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	if s.Persons.OIDCName() != "Example" {
		t.Errorf("name %q", s.Persons.OIDCName())
	}
	to := must2(s.Persons.StartOIDC(t.Context(), identity.Client{}))(t)
	at, query, _ := strings.Cut(to, "?")
	got := must(url.ParseQuery(query))(t)
	for _, random := range []string{"state", "nonce", "code_challenge"} {
		if len(got.Get(random)) < 26 {
			t.Errorf("%s is %q", random, got.Get(random))
		}
		got.Del(random)
	}
	want := url.Values{
		"client_id": {"intents"}, "response_type": {"code"}, "scope": {"openid email profile"}, "code_challenge_method": {"S256"},
		"redirect_uri": {"http://intents.example/auth/oauth2/callback/oidc"},
	}
	if diff := cmp.Diff(want, got); diff != "" || at != i.url+"/auth" {
		t.Errorf("to %s (-want +got):\n%s", at, diff)
	}
	if a, b := begin(t, s), begin(t, s); a.state == b.state || a.nonce == b.nonce || a.challenge == b.challenge {
		t.Errorf("two sign-ins share a secret: %+v, %+v", a, b)
	}

	i.down.Store(true)
	is(t, "a provider that is down after discovery", call2(s.Persons.StartOIDC(t.Context(), identity.Client{})), nil)
	i.down.Store(false)
	off := newServiceOn(t, roomsOf(s))
	if _, _, err := off.Persons.StartOIDC(t.Context(), identity.Client{}); !errors.Is(err, identity.ErrOIDCOff) || off.Persons.OIDCName() != "" {
		t.Errorf("without a provider: %v", err)
	}
	limited := newServiceOn(t, roomsOf(s), func(c *identity.Config) { c.Limits.SignInPerIP = 1 }, i.config)
	_, _, _ = limited.Persons.StartOIDC(t.Context(), identity.Client{})
	isLimited(t, "too often", call2(limited.Persons.StartOIDC(t.Context(), identity.Client{})), true)
}

// Sign-in answers ErrOIDCUnavailable until a provider that was down is discovered.
func TestDiscover_Retries(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.undiscovered)
	i.down.Store(true)
	var log bytes.Buffer
	var discovery sync.WaitGroup
	discovery.Go(func() { s.OIDC.Discover(t.Context(), slog.New(slog.NewJSONHandler(&log, nil))) })
	asynctest.Eventually(t, "the provider was asked", func() bool { return i.refused.Load() > 0 })
	_, _, started := s.Persons.StartOIDC(t.Context(), identity.Client{})
	_, finished := s.Persons.FinishOIDC(t.Context(), identity.Client{}, "state.nonce.verifier.9999999999", "state", "code")
	for _, err := range []error{started, finished} {
		if !errors.Is(err, identity.ErrOIDCUnavailable) {
			t.Errorf("while the provider is down: %v", err)
		}
	}
	i.down.Store(false)
	discovery.Wait()
	begin(t, s)
	if !strings.Contains(log.String(), "502 Bad Gateway") {
		t.Errorf("the log does not say why discovery failed:\n%s", &log)
	}
}

// A provider that names itself otherwise is another one.
func TestDiscover_AnotherIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := identity.NewOIDC(identity.OIDCConfig{Issuer: i.url + "/", ClientID: "intents", ClientSecret: clientSecret}, "http://intents.example")
	s := newService(t, func(c *identity.Config) { c.OIDC = o })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var log bytes.Buffer
	o.Discover(ctx, slog.New(slog.NewJSONHandler(&log, nil)))
	if _, _, err := s.Persons.StartOIDC(t.Context(), identity.Client{}); !errors.Is(err, identity.ErrOIDCUnavailable) || !strings.Contains(log.String(), "did not match") {
		t.Errorf("%v\n%s", err, &log)
	}
}

func TestFinishOIDC_Refused(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	stranger := newSigner(t)
	forged := func(sign func(claims string) string) func(begun) string {
		return func(b begun) string {
			claims, _ := json.Marshal(map[string]any{"iss": i.url, "aud": "intents", "sub": "ann", "nonce": b.nonce, "exp": time.Now().Add(time.Hour).Unix()})
			return i.answer(b, sign(string(claims)))
		}
	}
	with := func(claim string, value any) func(begun) string {
		return func(b begun) string { return i.grant(b, map[string]any{claim: value}) }
	}
	for name, code := range map[string]func(begun) string{
		"an unknown code":              func(begun) string { return "code" },
		"no code":                      func(begun) string { return "" },
		"a code of another sign-in":    func(begun) string { return i.grant(begin(t, s), nil) },
		"nonce of another sign-in":     with("nonce", begin(t, s).nonce),
		"no nonce":                     with("nonce", nil),
		"another issuer":               with("iss", "https://evil.example"),
		"another audience":             with("aud", "another client"),
		"no audience":                  with("aud", nil),
		"expired":                      with("exp", time.Now().Add(-time.Minute).Unix()),
		"no expiry":                    with("exp", nil),
		"no subject":                   with("sub", nil),
		"a subject no database stores": with("sub", "a\x00b"),
		"a long subject":               with("sub", strings.Repeat("s", 256)),
		"no ID token":                  func(b begun) string { return i.answer(b, "") },
		"signed by another key":        forged(func(c string) string { return oidctest.SignIDToken(stranger, "key", oidc.ES256, c) }),
		"signed with the client's secret": forged(func(c string) string {
			return oidctest.SignIDToken([]byte(clientSecret+strings.Repeat("x", 32)), "key", "HS256", c)
		}),
		"not signed": forged(func(c string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(c)) + "."
		}),
	} {
		b := begin(t, s)
		is(t, name, call(s.Persons.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, code(b))), identity.ErrOIDC)
	}

	b, other := begin(t, s), begin(t, s)
	parts := strings.Split(b.flow, ".")
	for name, c := range map[string]struct{ flow, state string }{
		"no cookie":                     {"", b.state},
		"no cookie and no state":        {"", ""},
		"no state":                      {b.flow, ""},
		"the state of another sign-in":  {b.flow, other.state},
		"the cookie of another sign-in": {other.flow, b.state},
		"a cookie with empty parts":     {"...9999999999", ""},
		"a cookie without a time":       {strings.Join(parts[:3], "."), b.state},
		"a cookie with a bad time":      {strings.Join(parts[:3], ".") + ".x", b.state},
		"a cookie that has expired":     {strings.Join(parts[:3], ".") + ".1700000000", b.state},
	} {
		is(t, name, call(s.Persons.FinishOIDC(t.Context(), identity.Client{}, c.flow, c.state, i.grant(b, nil))), identity.ErrFlowExpired)
	}
	equal(t, "accounts were made", pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts`), 0)
	is(t, "after all that, the sign-in itself", call(s.Persons.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, nil))), nil)
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/": true, "/console": true, "/console/keys?a=b&c=//d#e": true,
		"": false, "console": false, "//evil.example": false, "/\\evil.example": false, "\\\\evil.example": false, "https://evil.example": false,
		"/\t/evil.example": false, "/\n/evil.example": false, "javascript:alert(1)": false, "/a b": false, "/ü": false, " /console": false,
		"/" + strings.Repeat("a", 1024): false,
	} {
		if got := identity.LocalPath(path); got != want {
			t.Errorf("LocalPath(%q) = %t", path, got)
		}
	}
}

func TestFinishOIDC_Accounts(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	taken := must(account.New("Bob", "bob@example.com", "", time.Now()))(t)
	taken.EmailVerifiedAt = taken.CreatedAt
	entry := must(account.NewAuditEntry(taken.ID, account.Actor{}, account.SignedUp, time.Now()))(t)
	ok(t, s.Store.InsertAccount(t.Context(), taken, entry))
	const nobodys = "@oidc.invalid"
	for name, c := range map[string]struct {
		claims, userInfo map[string]any
		email            string // of the account, or how it ends
		err              error
	}{
		"verified":              {claims: map[string]any{"email": "Verified@Example.com"}, email: "verified@example.com"},
		"verified, as a string": {claims: map[string]any{"email": "string@example.com", "email_verified": "true"}, email: "string@example.com"},
		"not verified":          {claims: map[string]any{"email_verified": false}, email: nobodys},
		"not said to be":        {claims: map[string]any{"email_verified": nil}, email: nobodys},
		"taken":                 {claims: map[string]any{"email": "bob@example.com"}, err: account.ErrEmailTaken},
		"taken, not verified":   {claims: map[string]any{"email": "bob@example.com", "email_verified": false}, email: nobodys},
		"a wallet's":            {claims: map[string]any{"email": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266@eip155.invalid"}, email: nobodys},
		"no address":            {claims: map[string]any{"email": "not an address"}, email: nobodys},
		"none":                  {claims: map[string]any{"email": nil}, email: nobodys},
		"from user info": {
			claims: map[string]any{"email": nil, "email_verified": nil}, userInfo: map[string]any{"email": "info@example.com", "email_verified": true},
			email: "info@example.com",
		},
		"verified at user info alone": {
			claims: map[string]any{"email": "There@example.com", "email_verified": nil}, userInfo: map[string]any{"email": "there@example.com", "email_verified": true},
			email: "there@example.com",
		},
		"another address verified at user info": {
			claims: map[string]any{"email": "mine@example.com", "email_verified": nil}, userInfo: map[string]any{"email": "yours@example.com", "email_verified": true},
			email: nobodys,
		},
		"not verified in the token, verified at user info": {
			claims: map[string]any{"name": nil, "email": "no@example.com", "email_verified": false}, userInfo: map[string]any{"email": "no@example.com", "email_verified": true},
			email: nobodys,
		},
		"from user info, not verified": {
			claims: map[string]any{"email": nil}, userInfo: map[string]any{"email": "unsure@example.com"}, email: nobodys,
		},
		"user info of somebody else": {
			claims: map[string]any{"email": nil}, userInfo: map[string]any{"sub": "bob", "email": "carol@example.com", "email_verified": true},
			err: identity.ErrOIDC,
		},
	} {
		i.mu.Lock()
		i.userInfo = map[string]any{"sub": name}
		maps.Copy(i.userInfo, c.userInfo)
		i.mu.Unlock()
		c.claims["sub"] = name
		in, err := i.signIn(t, s, c.claims)
		if !errors.Is(err, c.err) || err == nil && !strings.HasSuffix(in.Account.Email, c.email) {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
}
