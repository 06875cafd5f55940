package identity_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

func TestStartOIDC(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	if s.OIDCName() != "Example" {
		t.Errorf("name %q", s.OIDCName())
	}
	to, _, err := s.StartOIDC(t.Context(), identity.Client{})
	if err != nil {
		t.Fatal(err)
	}
	at, query, _ := strings.Cut(to, "?")
	got, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
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
	if _, _, err := s.StartOIDC(t.Context(), identity.Client{}); err != nil {
		t.Errorf("the provider, down after discovery, was asked again: %v", err)
	}
	i.down.Store(false)
	off := newServiceOn(t, s.Store)
	if _, _, err := off.StartOIDC(t.Context(), identity.Client{}); !errors.Is(err, identity.ErrOIDCOff) || off.OIDCName() != "" {
		t.Errorf("without a provider: %v", err)
	}
	limited := newServiceOn(t, s.Store, func(c *identity.Config) { c.Limits.SignInPerIP = 1 }, i.config)
	_, _, _ = limited.StartOIDC(t.Context(), identity.Client{})
	_, _, err = limited.StartOIDC(t.Context(), identity.Client{})
	if _, is := errors.AsType[*identity.LimitedError](err); !is {
		t.Errorf("too often: %v", err)
	}
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
	_, _, started := s.StartOIDC(t.Context(), identity.Client{})
	_, finished := s.FinishOIDC(t.Context(), identity.Client{}, "state.nonce.verifier.9999999999", "state", "code")
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
	if _, _, err := s.StartOIDC(t.Context(), identity.Client{}); !errors.Is(err, identity.ErrOIDCUnavailable) || !strings.Contains(log.String(), "did not match") {
		t.Errorf("%v\n%s", err, &log)
	}
}

func TestFinishOIDC(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	var first *identity.SignedIn
	for range 2 {
		b := begin(t, s)
		in, err := s.FinishOIDC(t.Context(), identity.Client{IP: "203.0.113.7"}, b.flow, b.state, i.grant(b, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, owner, err := s.Session(t.Context(), in.Token); err != nil || owner.ID != in.Account.ID {
			t.Errorf("the session: %v, %v", owner, err)
		}
		if in.Account.Name != "Ann" || in.Account.Email != "ann@example.com" || in.Account.PasswordHash != "" {
			t.Errorf("the account: %+v", in.Account)
		}
		if first != nil && in.Account.ID != first.Account.ID {
			t.Error("the same person has two accounts")
		}
		first = in
	}
	want := "signed_up  203.0.113.7; signed_in with Example 203.0.113.7; signed_in with Example 203.0.113.7"
	got := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(concat_ws(' ', action, detail, ip_address), '; ' ORDER BY id) FROM audit_log`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	// A known person needs no further claims, and keeps the account whatever becomes of the address.
	b := begin(t, s)
	in, err := s.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, map[string]any{"email": "other@example.com"}))
	if err != nil || in.Account.ID != first.Account.ID || in.Account.Email != "ann@example.com" {
		t.Errorf("with another address: %+v, %v", in, err)
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
		if _, err := s.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, code(b)); !errors.Is(err, identity.ErrOIDC) {
			t.Errorf("%s: %v", name, err)
		}
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
		if _, err := s.FinishOIDC(t.Context(), identity.Client{}, c.flow, c.state, i.grant(b, nil)); !errors.Is(err, identity.ErrFlowExpired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if accounts := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts`); accounts != 0 {
		t.Errorf("%d accounts were made", accounts)
	}
	if _, err := s.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, nil)); err != nil {
		t.Errorf("after all that, the sign-in itself: %v", err)
	}
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
