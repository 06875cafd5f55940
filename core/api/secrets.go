package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

// Secrets are the digests of what gateways prove themselves by: the shared secret, and a second one while it is being replaced.
// Without a second one both digests are of the first.
type Secrets struct{ current, previous [sha256.Size]byte }

// NewSecrets takes the secret, and the previous one or nothing.
func NewSecrets(current, previous telemetry.Secret) Secrets {
	if previous == "" {
		previous = current
	}
	return Secrets{sha256.Sum256([]byte(current.Reveal())), sha256.Sum256([]byte(previous.Reveal()))}
}

// judge tells whether what was presented is one of the secrets, and whether it is the previous one. Digests are compared, and
// both always, so that neither a secret's content nor its length shows in the time that takes.
func (s Secrets) judge(presented string) (known, outdated bool) {
	got := sha256.Sum256([]byte(presented))
	current := subtle.ConstantTimeCompare(s.current[:], got[:])
	previous := subtle.ConstantTimeCompare(s.previous[:], got[:])
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
