package webtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"intents.internal/core/identity"
)

// OpenIDProvider is an OpenID Connect provider that vouches for the person whom a code names, once the nonce is known.
type OpenIDProvider struct {
	URL string
	// Nonce is the one that the next ID token has, that of the flow that was begun last.
	Nonce string

	key *ecdsa.PrivateKey
	mu  sync.Mutex
}

// StartOpenIDProvider starts a provider, which runs until the test ends.
func StartOpenIDProvider(t *testing.T) *OpenIDProvider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &OpenIDProvider{key: key}
	described := &oidctest.Server{
		PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "key", Algorithm: oidc.ES256}}, Algorithms: []string{oidc.ES256},
	}
	mux := http.NewServeMux()
	mux.Handle("/", described)
	mux.HandleFunc("POST /token", p.token)
	p.URL = Serve(t, mux)
	described.SetIssuer(p.URL)
	return p
}

func (p *OpenIDProvider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := r.FormValue("code")
	if name == "nobody" {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := fmt.Sprintf(`{"iss":%q,"aud":"intents","sub":%q,"nonce":%q,"exp":%d,"name":%q,"email":"%s@example.com","email_verified":true}`,
		p.URL, name, p.Nonce, time.Now().Add(time.Hour).Unix(), name, name)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"access_token": "access", "token_type": "Bearer", "id_token": oidctest.SignIDToken(p.key, "key", oidc.ES256, claims),
	})
}

// Settings has a service use the provider, which is discovered.
func (p *OpenIDProvider) Settings(c *Settings) {
	p.Undiscovered(c)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.Identity.OIDC.Discover(ctx, c.Identity.Log)
}

// Undiscovered has a service use the provider before it is discovered.
func (p *OpenIDProvider) Undiscovered(c *Settings) {
	c.Identity.OIDC = identity.NewOIDC(identity.OIDCConfig{Issuer: p.URL, ClientID: "intents", ClientSecret: "secret", Name: "Example"}, c.API.PublicURL)
}

// Begin starts a sign-in and returns the browser's cookie and the state.
func (p *OpenIDProvider) Begin(t *testing.T, s *Service, callback string, header ...string) (cookie, state string) {
	t.Helper()
	return p.begin(t, s, "/auth/sign-in/oauth2", fmt.Sprintf(`{"providerId":"oidc","callbackURL":%q}`, callback), header...)
}

// BeginLink starts to link the person to a session's account, and returns what Begin does.
func (p *OpenIDProvider) BeginLink(t *testing.T, s *Service, request string, session ...string) (cookie, state string) {
	t.Helper()
	return p.begin(t, s, "/auth/oauth2/link", request, session...)
}

func (p *OpenIDProvider) begin(t *testing.T, s *Service, path, request string, header ...string) (cookie, state string) {
	t.Helper()
	response := s.Send(t, "POST", path, request, header...)
	var answer struct{ URL string }
	text := ReadAll(t, response)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	to, err := url.Parse(answer.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Nonce = to.Query().Get("nonce")
	cookie, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return cookie, to.Query().Get("state")
}
