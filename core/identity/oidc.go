package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/pkg/telemetry"
)

const (
	// OIDCCallbackPath is the path of the redirect URI.
	OIDCCallbackPath = "/auth/oauth2/callback/oidc"
	// flowLifetime is how long a sign-in at the provider may take.
	flowLifetime = 10 * time.Minute
	// providerTimeout bounds one request to the provider, and providerBody its response.
	providerTimeout = 4 * time.Second
	providerBody    = 1 << 20
	// minRetry and maxRetry bound the wait between two attempts at discovery, which doubles each time.
	minRetry, maxRetry = time.Second, 30 * time.Second
)

// The errors of OpenID Connect sign-in, in addition to account.ErrEmailTaken, ErrSignUpClosed, ErrAccountDisabled and
// *LimitedError.
var (
	// ErrOIDCOff means that no provider is configured.
	ErrOIDCOff = errors.New("openid connect is not configured")
	// ErrOIDCUnavailable means that discovery has not succeeded yet.
	ErrOIDCUnavailable = errors.New("the openid connect provider of CORE_OIDC_ISSUER is not discovered yet")
	// ErrOIDC means that the provider did not authenticate the client.
	ErrOIDC = errors.New("the openid connect provider did not confirm the sign-in")
	// ErrFlowExpired means that this browser did not start the sign-in, or started it too long ago.
	ErrFlowExpired = errors.New("the sign-in was not begun here or took too long")
)

// OIDCConfig is an OpenID Connect provider and this service's client registration there.
type OIDCConfig struct {
	// Issuer is the provider's issuer URL, exactly as it names itself.
	Issuer       string
	ClientID     string
	ClientSecret telemetry.Secret
	// Name is the provider's name on the sign-in page.
	Name string
	// ACRValues are the authentication context classes, separated by spaces, that count as a second factor (OpenID Connect Core, section
	// 3.1.2.1); empty for none.
	ACRValues string
}

// OIDC is a provider, which serves sign-ins once Discover has succeeded.
type OIDC struct {
	config   OIDCConfig
	callback string
	client   *http.Client
	provider atomic.Pointer[provider]
}

// provider is a discovered provider as this service uses it.
type provider struct {
	*oidc.Provider
	oauth2   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// NewOIDC takes the URL at which browsers reach this service.
func NewOIDC(config OIDCConfig, publicURL string) *OIDC {
	client := outbound.NewClient(outbound.Config{Timeout: providerTimeout, MaxBody: providerBody})
	return &OIDC{config: config, callback: publicURL + OIDCCallbackPath, client: client}
}

// Discover requests the provider's endpoints until it responds or ctx ends, so that core starts without it.
func (o *OIDC) Discover(ctx context.Context, log *slog.Logger) {
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		found, err := o.discover(oidc.ClientContext(ctx, o.client))
		if err == nil {
			o.provider.Store(found)
			return
		}
		if ctx.Err() == nil {
			log.LogAttrs(ctx, slog.LevelWarn, "openid connect discovery failed, sign-in with the provider of CORE_OIDC_ISSUER waits for it",
				slog.String("retry_in", wait.String()), slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (o *OIDC) discover(ctx context.Context) (*provider, error) {
	found, err := oidc.NewProvider(ctx, o.config.Issuer)
	if err != nil {
		return nil, err
	}
	var document struct {
		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&document); err != nil {
		return nil, err
	}
	endpoint := found.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	// OpenID Connect Discovery, section 3: client_secret_basic is the default.
	if len(document.AuthMethods) > 0 && !slices.Contains(document.AuthMethods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &provider{
		Provider: found,
		oauth2: oauth2.Config{
			ClientID: o.config.ClientID, ClientSecret: o.config.ClientSecret.Reveal(), Endpoint: endpoint,
			RedirectURL: o.callback, Scopes: []string{oidc.ScopeOpenID, oidc.ScopeEmail, oidc.ScopeProfile},
		},
		verifier: found.Verifier(&oidc.Config{ClientID: o.config.ClientID}),
	}, nil
}

// OIDCName is the provider's name on the sign-in page, empty without a provider.
func (s *Persons) OIDCName() string {
	if s.OIDC == nil {
		return ""
	}
	return s.OIDC.config.Name
}

// ConfirmingOIDCName is OIDCName for a provider whose sign-ins can be a second factor, empty for others.
func (s *Persons) ConfirmingOIDCName() string {
	if s.OIDC == nil || s.OIDC.config.ACRValues == "" {
		return ""
	}
	return s.OIDC.config.Name
}

// StartOIDC returns the URL to redirect the browser to, and the flow for its cookie. It returns ErrOIDCOff, ErrOIDCUnavailable or a
// *LimitedError.
func (s *Persons) StartOIDC(ctx context.Context, client Client) (redirectURL, opaque string, err error) {
	f, redirectURL, err := s.startFlow(ctx, client)
	if err != nil {
		return "", "", err
	}
	return redirectURL, f.String(), nil
}

func (s *Persons) startFlow(ctx context.Context, client Client) (f flow, redirectURL string, err error) {
	o := s.OIDC
	if o == nil {
		return flow{}, "", ErrOIDCOff
	}
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return flow{}, "", err
	}
	p := o.provider.Load()
	if p == nil {
		return flow{}, "", ErrOIDCUnavailable
	}
	f = flow{state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier(), expiresAt: s.Store.Now().Add(flowLifetime)}
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)}
	if o.config.ACRValues != "" {
		maxAge := strconv.Itoa(int(maxFreshAge / time.Second))
		options = append(options, oauth2.SetAuthURLParam("acr_values", o.config.ACRValues), oauth2.SetAuthURLParam("max_age", maxAge))
	}
	return f, p.oauth2.AuthCodeURL(f.state, options...), nil
}

// FinishOIDC signs in the person whom the provider authenticated, and creates an account at the first sign-in. Only an e-mail
// address that the provider has verified counts. If another account has it, the error is account.ErrEmailTaken, because that
// account's owner may not own the address. It returns ErrFlowExpired, ErrOIDC, ErrOIDCUnavailable, ErrOIDCOff, ErrSignUpClosed,
// ErrAccountDisabled or a *LimitedError.
func (s *Persons) FinishOIDC(ctx context.Context, client Client, opaque, state, code string) (*SignedIn, error) {
	f, ok := parseFlow(opaque)
	if ok && f.link != "" {
		return nil, ErrFlowExpired
	}
	found, err := s.finishFlow(ctx, client, f, state, code)
	if err != nil {
		return nil, err
	}
	return s.signInIdentity(ctx, client, found.identity, "with "+s.OIDC.config.Name, found.confirms, func() (*account.Account, error) {
		claims, err := found.claims()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOIDC, err)
		}
		return claims.account(found.identity, s.Store.Now())
	})
}

// confirmation is the person whom the provider authenticated.
type confirmation struct {
	identity account.Identity
	// claims gets the provider's other claims about the person.
	claims func() (claims, error)
	// confirms says by what and when a new session is confirmed.
	confirms func(*account.Session)
}

// finishFlow exchanges the code that ends a flow. It returns ErrFlowExpired for the zero flow, which is none.
func (s *Persons) finishFlow(ctx context.Context, client Client, f flow, state, code string) (*confirmation, error) {
	o := s.OIDC
	if o == nil {
		return nil, ErrOIDCOff
	}
	if s.Store.Now().After(f.expiresAt) || subtle.ConstantTimeCompare([]byte(f.state), []byte(state)) != 1 {
		return nil, ErrFlowExpired
	}
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	p := o.provider.Load()
	if p == nil {
		return nil, ErrOIDCUnavailable
	}
	ctx = oidc.ClientContext(ctx, o.client)
	tokens, idToken, err := p.exchange(ctx, f, code)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOIDC, err)
	}
	identity, err := account.NewOIDCIdentity(o.config.Issuer, idToken.Subject)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOIDC, err)
	}
	confirms, err := o.confirms(idToken)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOIDC, err)
	}
	return &confirmation{identity, func() (claims, error) { return p.claims(ctx, tokens, idToken) }, confirms}, nil
}

// exchange turns the code into tokens and checks the ID token: its signature, issuer, audience, expiry and nonce.
func (p *provider) exchange(ctx context.Context, f flow, code string) (*oauth2.Token, *oidc.IDToken, error) {
	tokens, err := p.oauth2.Exchange(ctx, code, oauth2.VerifierOption(f.verifier))
	if err != nil {
		return nil, nil, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	idToken, err := p.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, nil, fmt.Errorf("check the ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(idToken.Nonce), []byte(f.nonce)) != 1 {
		return nil, nil, errors.New("the ID token is for another sign-in: its nonce differs")
	}
	return tokens, idToken, nil
}

// flow is a sign-in in progress. It is stored only in the cookie of its browser, which can change no other sign-in.
type flow struct {
	state, nonce, verifier string
	expiresAt              time.Time
	// link is empty for a sign-in. For a link it is the MAC of the session whose account gets the identity.
	link string
}

func (f flow) String() string {
	parts := []string{f.state, f.nonce, f.verifier, strconv.FormatInt(f.expiresAt.Unix(), 10)}
	if f.link != "" {
		parts = append(parts, f.link)
	}
	return strings.Join(parts, ".")
}

func parseFlow(opaque string) (f flow, ok bool) {
	parts := strings.Split(opaque, ".")
	if len(parts) < 4 || len(parts) > 5 || slices.Contains(parts, "") {
		return flow{}, false
	}
	seconds, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return flow{}, false
	}
	f = flow{state: parts[0], nonce: parts[1], verifier: parts[2], expiresAt: time.Unix(seconds, 0)}
	if len(parts) == 5 {
		f.link = parts[4]
	}
	return f, true
}
