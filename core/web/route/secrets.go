package route

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

// Secrets are the digests of the gateways' shared secret and of the previous one during a rotation, and what each mints client tokens with.
// Without a previous secret both are of the current one.
type Secrets struct {
	current, previous         [sha256.Size]byte
	tokens, tokensForPrevious *clienttoken.Minter
}

// NewSecrets takes the secret, and the previous one or nothing.
func NewSecrets(current, previous telemetry.Secret) Secrets {
	if previous == "" {
		previous = current
	}
	return Secrets{
		current: sha256.Sum256([]byte(current.Reveal())), previous: sha256.Sum256([]byte(previous.Reveal())),
		tokens: clienttoken.NewMinter(current), tokensForPrevious: clienttoken.NewMinter(previous),
	}
}

// match reports whether the presented secret is one of the two, and whether it is the previous one. It always compares both
// digests, so that its duration depends on neither secret's content nor length.
func (s Secrets) match(presented string) (ok, outdated bool) {
	got := sha256.Sum256([]byte(presented))
	current := subtle.ConstantTimeCompare(s.current[:], got[:])
	previous := subtle.ConstantTimeCompare(s.previous[:], got[:])
	return current|previous == 1, current == 0 && previous == 1
}

// Minter returns what mints the tokens of a gateway that has presented one of the secrets: the gateway verifies them with that secret.
func (s Secrets) Minter(presented string) *clienttoken.Minter {
	if _, outdated := s.match(presented); outdated {
		return s.tokensForPrevious
	}
	return s.tokens
}

// OnlyGateways rejects requests without a valid gateway secret, and marks every response as core's own.
func (ro *Router) OnlyGateways(next http.Handler) http.Handler {
	denied := ro.Handler(Route{Endpoint: func(w http.ResponseWriter, _ *http.Request) error { return Refuse(w, errNotGateway) }})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()[wire.HeaderCore] = markAnswered
		ok, outdated := ro.Secrets.match(r.Header.Get(wire.HeaderGatewaySecret))
		if !ok {
			denied.ServeHTTP(w, r)
			return
		}
		if outdated {
			ro.metrics.outdated.Inc()
		}
		next.ServeHTTP(w, r)
	})
}

// markAnswered and markRefused are the values of wire.HeaderCore, which nothing changes.
var (
	markAnswered = []string{wire.CoreAnswered}
	markRefused  = []string{wire.CoreRefused}
)

// Refuse marks the response as that of a request of which nothing was carried out, and returns its error.
func Refuse(w http.ResponseWriter, e *Error) *Error {
	w.Header()[wire.HeaderCore] = markRefused
	return e
}
