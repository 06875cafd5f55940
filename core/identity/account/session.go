package account

import (
	"crypto/rand"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
)

// SessionLifetime is how long a browser stays signed in.
const SessionLifetime = 7 * 24 * time.Hour

// BrowserSessionLifetime is how long a session that ends with the browser lasts at most, because the end of a browser is not seen.
const BrowserSessionLifetime = 24 * time.Hour

// MaxSessions is the maximum number of sessions of one person: far more than the browsers that a person uses. A further sign-in
// ends the oldest one.
const MaxSessions = 100

// Session is a signed-in browser. Its token is only in the cookie; the service stores the hash.
type Session struct {
	ID uuid.UUID
	// AccountID is the account that signed in: the person.
	AccountID uuid.UUID
	TokenHash [32]byte
	IPAddress string
	UserAgent string
	ExpiresAt time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
	// ConfirmedAt is when Factor was last shown, or the sign-in.
	ConfirmedAt time.Time
	Factor      Factor
	// HasPasskey reports whether the person had a passkey when the session was read.
	HasPasskey bool
	// Acting is the other account that the session acts on, nil for the person's own.
	Acting *Membership
}

// Factor is what confirmed a session besides its sign-in.
type Factor string

// The factors. Those of a passkey and of a provider are second factors.
const (
	// FactorNone is a sign-in by password or wallet, or by a provider without an acr that counts.
	FactorNone Factor = ""
	// FactorPassword is a password that was repeated.
	FactorPassword Factor = "password"
	// FactorPasskey is a passkey whose authenticator verified its user.
	FactorPasskey Factor = "passkey"
	// FactorProvider is an ID token whose acr the operator has chosen.
	FactorProvider Factor = "oidc"
)

// IsSecond reports whether a factor is more than a password or a wallet.
func (f Factor) IsSecond() bool { return f == FactorPasskey || f == FactorProvider }

// LastConfirmedAt is when the session was last confirmed. Without a factor that is never after its sign-in.
func (s *Session) LastConfirmedAt() time.Time {
	if s.Factor == FactorNone && s.CreatedAt.Before(s.ConfirmedAt) {
		return s.CreatedAt
	}
	return s.ConfirmedAt
}

// ActingID returns the account that the session acts on.
func (s *Session) ActingID() uuid.UUID {
	if s.Acting == nil {
		return s.AccountID
	}
	return s.Acting.Account.ID
}

// EndWithBrowser makes a new session end with the browser: its cookies are not kept on disk.
func (s *Session) EndWithBrowser() { s.ExpiresAt = s.CreatedAt.Add(BrowserSessionLifetime) }

// EndsWithBrowser reports whether the session ends with the browser.
func (s *Session) EndsWithBrowser() bool {
	return s.ExpiresAt.Sub(s.CreatedAt) <= BrowserSessionLifetime
}

// NewSession creates a session and returns the token for its cookie, which is not stored.
func NewSession(accountID uuid.UUID, ipAddress, userAgent string, now time.Time) (*Session, string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, "", err
	}
	token := rand.Text() + rand.Text()
	return &Session{
		ID: id, AccountID: accountID, TokenHash: HashToken(token),
		IPAddress: clip(ipAddress), UserAgent: clip(userAgent),
		ExpiresAt: now.Add(SessionLifetime), CreatedAt: now, UpdatedAt: now, ConfirmedAt: now,
	}, token, nil
}

// HashToken returns the SHA-256 of a session token. A token has 260 random bits, so its digest needs no salt.
func HashToken(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// clip truncates a user agent.
func clip(s string) string { return clipTo(s, 256) }

// clipTo drops control characters, replaces invalid UTF-8 and truncates to longest characters.
func clipTo(s string, longest int) string {
	printable := make([]rune, 0, min(len(s), longest))
	for _, r := range s {
		if len(printable) == longest {
			break
		}
		if r >= ' ' && r != 0x7f {
			printable = append(printable, r)
		}
	}
	return string(printable)
}
