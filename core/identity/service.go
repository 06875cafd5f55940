// Package identity authenticates people and authorizes what they do with accounts: sign-up, sign-in, sessions, members, roles, keys
// and the mails about them. It owns the operations behind the /auth routes and the console, with their limits and their entries in
// the audit log, and its rows (files *_rows.go). Of HTTP it has only the cookies.
//
// Sessions are rows rather than the opaque blobs of alexedwards/scs, which cannot be listed by account or deleted with it in one
// statement.
package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
)

// What callers branch on, besides *LimitedError and the errors of package account.
var (
	// ErrCredentials means a wrong e-mail address or a wrong password; it does not say which.
	ErrCredentials = errors.New("wrong e-mail address or password")
	// ErrPassword means a wrong password of the signed-in account.
	ErrPassword = errors.New("wrong password")
	// ErrNoPassword means that the account has another way to sign in and no password.
	ErrNoPassword = errors.New("the account has no password")
	// ErrResetToken means a token that is unknown, used or expired.
	ErrResetToken = errors.New("no such reset token")
	// ErrMailOff means that the operator has configured no mail server.
	ErrMailOff = errors.New("mail is not configured")
	// ErrVerificationOff is ErrMailOff for mails about addresses.
	ErrVerificationOff = errors.New("mail is not configured, so no address can be verified")
	// ErrEmailVerified means that there is nothing to verify.
	ErrEmailVerified = errors.New("the e-mail address is verified already")
	// ErrEmailNotVerified means that the person's own address must be verified first.
	ErrEmailNotVerified = errors.New("the person's e-mail address is not verified")
	// ErrEmailMismatch means an address that is not the signed-in account's.
	ErrEmailMismatch = errors.New("the e-mail address is not the account's")
	// ErrLink means a link for an address that is unknown, used or expired.
	ErrLink = errors.New("no such link")
	// ErrLinkSignedOut means that a link works only for a client that is signed in to its account or knows its password.
	ErrLinkSignedOut = errors.New("not signed in to the account of the link")
	ErrSignUpClosed  = errors.New("sign-up is closed")
	ErrSignedOut     = account.ErrSignedOut
	// ErrSessionNotFresh means that the effect of an operation needs a newer session or the person's password. It comes as
	// ErrPasswordNeeded or ErrSignInNeeded, which say what the person can do.
	ErrSessionNotFresh = errors.New("the session is too old for this")
	// ErrPasswordNeeded is for a person who has a password.
	ErrPasswordNeeded = fmt.Errorf("%w without the password", ErrSessionNotFresh)
	// ErrSignInNeeded is for a person without a password.
	ErrSignInNeeded = fmt.Errorf("%w, and there is no password to confirm it", ErrSessionNotFresh)
	// ErrPasskeyNeeded is for a person who has a passkey: a password alone confirms nothing then.
	ErrPasskeyNeeded = fmt.Errorf("%w without a passkey", ErrSessionNotFresh)
	// ErrSecondFactor means that the operator requires a second factor for an effect, which the person does not have.
	ErrSecondFactor = errors.New("the person has no second factor")
	// ErrBusy means that too many passwords wait for a check.
	ErrBusy = errors.New("too many passwords to check")
)

// Config is the service's configuration; Store, Passwords, Limits, Log and Metrics must be set.
type Config struct {
	Store     *Store
	Mail      *mail.Store
	Passwords *account.Passwords
	// Redis keeps the limits that all cores share. With nil this core counts in memory.
	Redis  redis.UniversalClient
	Limits Limits
	// SignUpOpen lets anyone make an account.
	SignUpOpen bool
	Log        *slog.Logger
	Metrics    prometheus.Registerer
	// PublicURL is where browsers reach the service, without a path.
	PublicURL string
	// MailQueued is called after a mail was put into the outbox, and must not block. Without it no mail is sent, and operations
	// that need one fail with ErrMailOff.
	MailQueued func()
	// SecondFactor requires a passkey, or an acr of the provider, for what moves money and for making owners.
	SecondFactor bool
	// OIDC is the OpenID Connect provider, nil for none.
	OIDC *OIDC
	// Screening refuses wallets that the operator does not serve; nil for none.
	Screening *screening.Screen
	// Chains has the nodes that verify signatures of smart accounts, nil for none.
	Chains *rpc.Client
}

// Service is the operations of identity, by noun. It is safe for concurrent use.
type Service struct {
	*base

	Persons  *Persons
	Sessions *Sessions
	Members  *Members
	Keys     *Keys
}

// Persons are the operations by which people get an account and a session, and on what they sign in with: addresses, passwords, wallets, passkeys
// and the provider's identities.
type Persons struct {
	*base

	sessions *Sessions
	passkeys passkeyMetrics
	// relyingParty is nil where browsers know no passkeys.
	relyingParty *webauthn.WebAuthn
}

// Sessions are the operations on sessions: whose request it is, what it may do, which sessions a person has and which end.
type Sessions struct {
	*base

	// found are the persons of the sessions that this core has found, by the hash of the token.
	found *lru.Cache[[32]byte, uuid.UUID]
}

// Members are the operations on shared accounts: who belongs to them, in which role, and who is invited.
type Members struct{ *base }

// base is what the services share: the configuration, the limits, and what decides on a write of a session.
type base struct {
	Config
	limiter   *limiter
	limits    limits
	passwords passwordMetrics
}

// New returns the service of a config. It sends no request.
func New(config Config) *Service {
	limiter := newLimiter(config)
	found, err := lru.New[[32]byte, uuid.UUID](foundSessions)
	if err != nil {
		panic(err) // it is for a size below 1
	}
	shared := &base{
		Config: config, limiter: limiter, limits: newLimits(limiter, config.Limits), passwords: newPasswordMetrics(config.Metrics),
	}
	sessions := &Sessions{shared, found}
	persons := &Persons{shared, sessions, newPasskeyMetrics(config.Metrics), newRelyingParty(config.PublicURL)}
	return &Service{base: shared, Persons: persons, Sessions: sessions, Members: &Members{shared}, Keys: &Keys{shared}}
}

// Client is the browser that sends a request, signed in or not.
type Client struct {
	IP        string
	UserAgent string
	// Token is the session token in the browser's cookie, empty for none.
	Token string
	// Device is the value of the browser's device cookie, empty for none.
	Device string
	// Password is the person's password where the request repeats it to confirm an operation, empty for none.
	Password string
	// EndsWithBrowser asks for a session that ends with the browser, as of a sign-in with rememberMe: false.
	EndsWithBrowser bool
	// Person is the person who is signed in, uuid.Nil for nobody.
	Person uuid.UUID
}

// Actor is the client in the audit log.
func (c Client) Actor() account.Actor {
	return account.Actor{PersonID: c.Person, IPAddress: c.IP, UserAgent: c.UserAgent}
}

// entry is an entry of the audit log about what a client does to an account.
func (s *base) entry(client Client, accountID uuid.UUID, action account.Action, detail string) account.AuditEntry {
	entry, err := account.NewAuditEntry(accountID, client.Actor(), action, s.Store.Now())
	if err != nil {
		panic(err) // the source of random numbers never fails
	}
	entry.Detail = detail
	return entry
}

// SignedIn is a new session. Token and Device are for the browser's cookies and are not stored; Device is empty if no password was
// checked. Session is nil after a sign-up whose address must be verified first.
type SignedIn struct {
	Account *account.Account
	Session *account.Session
	Token   string
	Device  string
}

// passwordTimeout bounds the time spent on one password, the wait in the queue included. It is below the deadline of a request, which
// can still answer 503.
const passwordTimeout = 3 * time.Second

// matches checks a password, and returns ErrBusy after passwordTimeout.
func (s *base) matches(ctx context.Context, password, hash string) (same bool, err error) {
	err = s.timed(ctx, func(ctx context.Context) error {
		same, err = s.Passwords.Matches(ctx, password, hash)
		return err
	})
	return same, err
}

// hash hashes a new password, and returns ErrBusy after passwordTimeout.
func (s *base) hash(ctx context.Context, password string) (hash string, err error) {
	err = s.timed(ctx, func(ctx context.Context) error {
		hash, err = s.Passwords.Hash(ctx, password)
		return err
	})
	return hash, err
}

// timed bounds and measures the work on one password.
func (s *base) timed(ctx context.Context, work func(context.Context) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, passwordTimeout, ErrBusy)
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
