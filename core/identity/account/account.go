// Package account defines accounts, their passwords, browser sessions and API keys, and the rules for each.
package account

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"intents.internal/pkg/network"
	"intents.internal/pkg/tokenbucket"
)

// Account is one customer.
type Account struct {
	ID    uuid.UUID
	Name  string
	Email string
	// PasswordHash is an Argon2id hash in PHC string format. It is empty for an account that signs in only with an Identity.
	PasswordHash string
	// EmailVerifiedAt is when the owner verified the address, zero for never.
	EmailVerifiedAt time.Time
	// VerificationRequired prevents sign-in by password until the address is verified, if mail is configured.
	VerificationRequired bool
	// Limit is the total limit of its keys in one environment.
	Limit Limit
	// Shared accounts belong only to their members: nobody signs in to them.
	Shared    bool
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Bucket is the token bucket that all keys of the account share in an environment.
func (a *Account) Bucket(env network.Environment) tokenbucket.Bucket {
	return tokenbucket.Bucket{Name: tokenbucket.AccountName(env, a.ID.String()), Rule: a.Limit.Rule()}
}

const longestName = 128

// The errors that callers branch on.
var (
	ErrEmailTaken    = errors.New("an account with this e-mail address exists")
	ErrIdentityTaken = errors.New("another account has this identity")
	// ErrIdentityNotFound means that the account does not have the identity.
	ErrIdentityNotFound  = errors.New("the account has no such identity")
	ErrLastWayIn         = errors.New("the account has no other way to sign in")
	ErrTooManyIdentities = errors.New("the account has as many identities as it may")

	ErrNotFound   = errors.New("no such account, session or key")
	ErrSignedOut  = errors.New("not signed in")
	ErrNotEnded   = errors.New("the account has not ended")
	ErrTooMany    = errors.New("the account has as many keys as it may")
	ErrFormUsed   = errors.New("the form was sent already")
	ErrKeyExpired = errors.New("the key has expired")
	ErrKeyRotated = errors.New("the key was rotated and is on its way out")
)

// InvalidError is the error for an invalid field, with a message for the client.
type InvalidError struct {
	// Field is the field's name as clients write it.
	Field   string
	Message string
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Message }

// New creates an account. The name defaults to the e-mail address; the address is stored in lower case. Addresses under .invalid
// are rejected: they are placeholders for accounts without an address.
func New(name, email, passwordHash string, now time.Time) (*Account, error) {
	email, err := ParseNewEmail("email", email)
	if err != nil {
		return nil, err
	}
	return newAccount(name, email, passwordHash, now)
}

// NewOfAddress creates an account for a person who verified an address that another account has or had.
func NewOfAddress(email, passwordHash string, now time.Time) (*Account, error) {
	a, err := newAccount(clipTo(email, longestName), email, passwordHash, now)
	if err != nil {
		return nil, err
	}
	a.EmailVerifiedAt = now
	return a, nil
}

func newAccount(name, email, passwordHash string, now time.Time) (_ *Account, err error) {
	if strings.TrimSpace(name) == "" {
		name = email
	}
	if name, err = parseName(name, longestName); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	return &Account{ID: id, Name: name, Email: email, PasswordHash: passwordHash, Limit: DefaultAccountLimit, CreatedAt: now, UpdatedAt: now}, nil
}

// HasEmail reports whether the account has an e-mail address: one under .invalid is a placeholder.
func (a *Account) HasEmail() bool { return !strings.HasSuffix(a.Email, ".invalid") }

// EmailVerified reports whether the owner verified the address.
func (a *Account) EmailVerified() bool { return !a.EmailVerifiedAt.IsZero() }

// ParseNewEmail parses a new address of an account and returns it in lower case. It must be ASCII, with an international domain
// as A-labels (xn--…, RFC 5890), because other letters allow homograph spoofing in mails and on pages. Addresses under .invalid
// are placeholders and are rejected.
func ParseNewEmail(field, s string) (string, error) {
	email, err := ParseEmail(s)
	if err != nil {
		return "", &InvalidError{Field: field, Message: mustBeEmail}
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return "", &InvalidError{Field: field, Message: "must be in ASCII letters; write an international domain in its form that begins with xn--"}
	}
	if domain := email[strings.LastIndexByte(email, '@')+1:]; domain == "invalid" || strings.HasSuffix(domain, ".invalid") {
		return "", &InvalidError{Field: field, Message: "must not be under .invalid, where nobody has an address"}
	}
	return email, nil
}

const mustBeEmail = "must be an e-mail address such as name@example.com"

// ParseEmail parses one bare address (RFC 5322 addr-spec, at most the 254 characters of RFC 5321) and returns it in lower case.
func ParseEmail(s string) (string, error) {
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || len(s) > 254 || unstorable(s) {
		return "", &InvalidError{Field: "email", Message: mustBeEmail}
	}
	return strings.ToLower(s), nil
}

func parseName(s string, longest int) (string, error) {
	s = strings.TrimSpace(s)
	if n := utf8.RuneCountInString(s); n < 1 || n > longest || unstorable(s) {
		return "", &InvalidError{Field: "name", Message: fmt.Sprintf("must have 1 to %d characters", longest)}
	}
	return s, nil
}

// unstorable reports whether Postgres cannot store a text.
func unstorable(s string) bool { return strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) }

// LostEmail returns the placeholder address of an account whose address another person verified. The account's password works
// with it.
func LostEmail(id uuid.UUID) string { return id.String() + "@account.invalid" }
