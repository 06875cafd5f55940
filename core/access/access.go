// Package access decides who may come in and who may manage keys. It owns the operations behind the /auth routes and the
// console: the limits on guessing, the password checks, the sessions and what the audit log says of them. It knows no
// SQL, and of HTTP the cookie alone.
//
// Sessions are rows of our own rather than those of alexedwards/scs, which keeps opaque blobs: they could not be listed by
// account nor end with it in one statement.
package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
)

// What callers branch on, besides *LimitedError and the errors of package account.
var (
	// ErrCredentials does not say which of address and password is wrong.
	ErrCredentials = errors.New("wrong e-mail address or password")
	// ErrPassword is a wrong password where the account is known, since it is signed in.
	ErrPassword     = errors.New("wrong password")
	ErrSignUpClosed = errors.New("sign-up is closed")
	ErrSignedOut    = errors.New("not signed in")
	// ErrSessionNotFresh asks for another sign-in before what cannot be taken back.
	ErrSessionNotFresh = errors.New("the session is too old for this")
	// ErrBusy says that too many passwords wait to be checked.
	ErrBusy = errors.New("too many passwords to check")
)

// Config is what the service needs; Store, Passwords, Limits, Log and Metrics must be set.
type Config struct {
	Store     *postgres.Store
	Passwords *account.Passwords
	// Redis holds the limits that all cores share. Nil lets this core count alone.
	Redis  redis.UniversalClient
	Limits Limits
	// SignUpOpen lets anyone make an account.
	SignUpOpen bool
	Log        *slog.Logger
	Metrics    prometheus.Registerer
	// PublicURL is where browsers reach the service, without a path.
	PublicURL string
	// OIDC is the OpenID Connect provider, nil for none.
	OIDC *OIDC
}

// Service is safe for concurrent use.
type Service struct {
	Config
	limiter   *limiter
	limits    limits
	passwords passwordMetrics
}

// New returns what Limits.Validate returns; it asks nobody yet.
func New(config Config) (*Service, error) {
	if err := config.Limits.Validate(); err != nil {
		return nil, err
	}
	limiter, err := newLimiter(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the limits: %w", err)
	}
	return &Service{
		Config: config, limiter: limiter, limits: newLimits(limiter, config.Limits), passwords: newPasswordMetrics(config.Metrics),
	}, nil
}

// Visitor is a browser, signed in or not.
type Visitor struct {
	IP        string
	UserAgent string
	// Token is the session's that the browser presents, empty for none.
	Token string
	// Device is the device cookie that the browser presents, empty for none.
	Device string
}

func (v Visitor) actor() account.Actor {
	return account.Actor{IPAddress: v.IP, UserAgent: v.UserAgent}
}

// SignedIn is a browser that has just come in. Token and Device are for its cookies and are kept nowhere; Device is empty where
// no password was checked.
type SignedIn struct {
	Account *account.Account
	Session *account.Session
	Token   string
	Device  string
}

// passwordWait bounds the time spent on one password, the wait for a turn included. It leaves a request time to say that
// it was too long.
const passwordWait = 3 * time.Second

// matches checks a password, and returns ErrBusy if its turn did not come.
func (s *Service) matches(ctx context.Context, password, hash string) (same bool, err error) {
	err = s.inTurn(ctx, func(ctx context.Context) error {
		same, err = s.Passwords.Matches(ctx, password, hash)
		return err
	})
	return same, err
}

// hash hashes a new password, and returns ErrBusy if its turn did not come.
func (s *Service) hash(ctx context.Context, password string) (hash string, err error) {
	err = s.inTurn(ctx, func(ctx context.Context) error {
		hash, err = s.Passwords.Hash(ctx, password)
		return err
	})
	return hash, err
}

// inTurn bounds and measures the work on one password.
func (s *Service) inTurn(ctx context.Context, work func(context.Context) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, passwordWait, ErrBusy)
	defer cancel()
	started := time.Now()
	s.passwords.waiting.Inc()
	err := work(waiting)
	s.passwords.waiting.Dec()
	s.passwords.elapsed.Observe(time.Since(started).Seconds())
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		s.passwords.refused.Inc()
		return context.Cause(waiting)
	}
	return err
}
