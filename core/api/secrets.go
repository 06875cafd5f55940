package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync/atomic"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

// Secrets are what gateways prove themselves by: one, and for as long as it is being changed the one before as well. They are
// safe for concurrent use.
type Secrets struct{ known atomic.Pointer[digests] }

// digests are of the secrets; without a previous one its digest is that of the current.
type digests struct{ current, previous [sha256.Size]byte }

// NewSecrets takes the secret, and the one before it or nothing.
func NewSecrets(current, previous telemetry.Secret) *Secrets {
	s := &Secrets{}
	s.Set(current, previous)
	return s
}

// Set has these count from the next request on.
func (s *Secrets) Set(current, previous telemetry.Secret) {
	if previous == "" {
		previous = current
	}
	s.known.Store(&digests{sha256.Sum256([]byte(current.Reveal())), sha256.Sum256([]byte(previous.Reveal()))})
}

// judge tells whether what was presented is one of the secrets, and whether it is the previous one. Digests are compared, and
// both always, so that neither a secret's content nor its length shows in the time that takes.
func (s *Secrets) judge(presented string) (known, outdated bool) {
	want, got := s.known.Load(), sha256.Sum256([]byte(presented))
	current := subtle.ConstantTimeCompare(want.current[:], got[:])
	previous := subtle.ConstantTimeCompare(want.previous[:], got[:])
	return current|previous == 1, current == 0 && previous == 1
}

// onlyGateways refuses whoever knows no secret.
func (s *Server) onlyGateways(next http.Handler) http.Handler {
	denied := s.route(func(http.ResponseWriter, *http.Request) error { return errNotGateway }, failure{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known, outdated := s.Secrets.judge(r.Header.Get(wire.HeaderGatewaySecret))
		if !known {
			denied.ServeHTTP(w, r)
			return
		}
		if outdated {
			s.metrics.outdated.Inc()
		}
		next.ServeHTTP(w, r)
	})
}
