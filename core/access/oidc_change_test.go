package access_test

import (
	"errors"
	"testing"

	"intents.internal/core/access"
)

// The client's secret is replaced at the provider and here while somebody is away: the code is exchanged for the new one, and the
// provider is not asked for its endpoints again.
func TestOIDCSecretChanges(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	finish := func(b begun) error {
		_, err := s.FinishOIDC(t.Context(), access.Visitor{}, b.flow, b.state, i.grant(b, nil))
		return err
	}
	away := begin(t, s)
	i.mu.Lock()
	i.secret = "another secret: 100%"
	i.mu.Unlock()
	if err := finish(begin(t, s)); !errors.Is(err, access.ErrOIDC) {
		t.Errorf("with the old secret: %v", err)
	}
	s.SetOIDC(access.NewOIDC(access.OIDCConfig{Issuer: i.url, ClientID: "intents", ClientSecret: "another secret: 100%"}, s.PublicURL))
	i.down.Store(true)
	if _, _, err := s.StartOIDC(t.Context(), access.Visitor{}); err != nil {
		t.Errorf("the provider, down now, was asked for its endpoints again: %v", err)
	}
	i.down.Store(false)
	if err := finish(away); err != nil {
		t.Errorf("with the new secret: %v", err)
	}
}

// Another provider takes the place of the first, and none its own in the end; who was away has to begin anew.
func TestOIDCProviderChanges(t *testing.T) {
	t.Parallel()
	first, second := newIssuer(t), newIssuer(t)
	s := newService(t, first.config)
	away := begin(t, s)
	s.SetOIDC(access.NewOIDC(access.OIDCConfig{Issuer: second.url, ClientID: "intents", ClientSecret: clientSecret, Name: "Second"}, s.PublicURL))
	if _, err := s.FinishOIDC(t.Context(), access.Visitor{}, away.flow, away.state, first.grant(away, nil)); !errors.Is(err, access.ErrOIDC) {
		t.Errorf("back from the first: %v", err)
	}
	b := begin(t, s)
	if _, err := s.FinishOIDC(t.Context(), access.Visitor{}, b.flow, b.state, second.grant(b, nil)); err != nil || s.OIDCName() != "Second" {
		t.Errorf("by %q: %v", s.OIDCName(), err)
	}
	b = begin(t, s)
	s.SetOIDC(nil)
	if _, _, err := s.StartOIDC(t.Context(), access.Visitor{}); !errors.Is(err, access.ErrOIDCOff) || s.OIDCName() != "" {
		t.Errorf("without a provider: %v", err)
	}
	if _, err := s.FinishOIDC(t.Context(), access.Visitor{}, b.flow, b.state, second.grant(b, nil)); !errors.Is(err, access.ErrOIDCOff) {
		t.Errorf("back to none: %v", err)
	}
}
