package identity_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"intents.internal/core/identity"
)

const clientSecret = "a secret of the provider's"

// issuer is a provider of the tests' own, for what no real one does: tokens that are wrong. What a code is exchanged for
// is in codes, as the token endpoint's answer.
type issuer struct {
	url      string
	key      *ecdsa.PrivateKey
	down     atomic.Bool
	refused  atomic.Int64 // requests while down
	mu       sync.Mutex
	secret   string // the client's
	codes    map[string]map[string]any
	acr      string            // of the configuration
	verifier map[string]string // by code, the challenge that its verifier must meet
	userInfo map[string]any
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{secret: clientSecret, codes: map[string]map[string]any{}, verifier: map[string]string{}, key: newSigner(t)}
	keys := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: i.key.Public(), KeyID: "key", Algorithm: oidc.ES256}}}
	mux := http.NewServeMux()
	mux.Handle("GET /keys", keys)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		writeJSON(w, 200, i.userInfo)
	})
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, map[string]any{
			"issuer": i.url, "authorization_endpoint": i.url + "/auth", "token_endpoint": i.url + "/token", "jwks_uri": i.url + "/keys",
			"userinfo_endpoint": i.url + "/me", "id_token_signing_alg_values_supported": []string{oidc.ES256, "HS256", "none"},
		})
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.down.Load() {
			i.refused.Add(1)
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

func newSigner(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	code := r.FormValue("code")
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	answer, known := i.codes[code]
	switch {
	case id != "intents" || secret != url.QueryEscape(i.secret):
		writeJSON(w, 401, map[string]string{"error": "invalid_client"})
	case !known || base64.RawURLEncoding.EncodeToString(sum[:]) != i.verifier[code] ||
		r.FormValue("redirect_uri") != "http://intents.example/auth/oauth2/callback/oidc":
		writeJSON(w, 400, map[string]string{"error": "invalid_grant"})
	default:
		delete(i.codes, code)
		writeJSON(w, 200, answer)
	}
}

// config has newService use the provider, which is discovered.
func (i *issuer) config(c *identity.Config) {
	i.undiscovered(c)
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	c.OIDC.Discover(ctx, c.Log)
}

// undiscovered has newService use the provider before it is discovered.
func (i *issuer) undiscovered(c *identity.Config) {
	c.OIDC = identity.NewOIDC(identity.OIDCConfig{Issuer: i.url, ClientID: "intents", ClientSecret: clientSecret, Name: "Example", ACRValues: i.acr}, c.PublicURL)
}

// begun is a sign-in on its way to the provider.
type begun struct{ flow, state, nonce, challenge string }

func begin(t *testing.T, s *identity.Service) begun {
	t.Helper()
	to, flow, err := s.Persons.StartOIDC(t.Context(), identity.Client{})
	ok(t, err)
	return newBegun(t, to, flow)
}

func newBegun(t *testing.T, to, flow string) begun {
	t.Helper()
	q := must(url.Parse(to))(t).Query()
	return begun{flow: flow, state: q.Get("state"), nonce: q.Get("nonce"), challenge: q.Get("code_challenge")}
}

// signIn signs in a person with these claims, as grant takes them.
func (i *issuer) signIn(t *testing.T, s *identity.Service, claims map[string]any) (*identity.SignedIn, error) {
	t.Helper()
	b := begin(t, s)
	return s.Persons.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, claims))
}

// grant makes a code that is good for an ID token with these claims, and those that every token has unless they are here
// too; nil leaves one out.
func (i *issuer) grant(b begun, claims map[string]any) (code string) {
	all := map[string]any{
		"iss": i.url, "aud": "intents", "sub": "ann", "nonce": b.nonce, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"name": "Ann", "email": "ann@example.com", "email_verified": true,
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return i.answer(b, oidctest.SignIDToken(i.key, "key", oidc.ES256, string(payload)))
}

func (i *issuer) answer(b begun, idToken string) (code string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	code = rand.Text()
	i.codes[code] = map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": idToken}
	i.verifier[code] = b.challenge
	return code
}
