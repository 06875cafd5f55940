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
)

// Account is one customer.
type Account struct {
	ID    uuid.UUID
	Name  string
	Email string
	// PasswordHash is an Argon2id hash in PHC string format. It is empty for an account that signs in by an Identity alone.
	PasswordHash string
	// EmailVerifiedAt is when the owner proved to receive mail at the address, zero for never.
	EmailVerifiedAt time.Time
	// VerificationRequired keeps the owner from signing in by password until the address is verified, where mail is configured.
	VerificationRequired bool
	// Limit is that of all its keys in one environment together.
	Limit Limit
	// Shared accounts belong to their members alone: nobody signs in to them.
	Shared    bool
	CreatedAt time.Time
	UpdatedAt time.Time
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
	ErrNotEnded   = errors.New("the account has not ended")
	ErrTooMany    = errors.New("the account has as many keys as it may")
	ErrFormUsed   = errors.New("the form was sent already")
	ErrKeyExpired = errors.New("the key has expired")
	ErrKeyRotated = errors.New("the key was rotated and is on its way out")
)

// InvalidError is an invalid field, with a message for the client.
type InvalidError struct {
	// Field is the field's name as clients write it.
	Field   string
	Message string
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Message }

// New makes an account. The name defaults to the e-mail address; the address is kept in lower case. Addresses under
// .invalid are refused: they stand for accounts that have none.
func New(name, email, passwordHash string, now time.Time) (*Account, error) {
	email, err := ParseNewEmail("email", email)
	if err != nil {
		return nil, err
	}
	return newAccount(name, email, passwordHash, now)
}

// NewOfAddress makes an account for who proved to receive mail at an address that an account has or had.
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

// HasEmail reports whether the address can receive mail: one under .invalid stands for none.
func (a *Account) HasEmail() bool { return !strings.HasSuffix(a.Email, ".invalid") }

// EmailVerified reports whether the owner proved to receive mail at the address.
func (a *Account) EmailVerified() bool { return !a.EmailVerifiedAt.IsZero() }

// ParseNewEmail reads, in lower case, an address that an account is to get. It must be in ASCII, an international domain as its A-labels
// (xn--…, RFC 5890): an address in other letters can look like somebody else's, in a mail and on a page. Addresses under .invalid stand for
// none.
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

// ParseEmail reads one bare address (RFC 5322 addr-spec, at most the 254 characters of RFC 5321) in lower case.
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

// LostEmail is the address of an account that lost its own to who proved it. The account's password works with it.
func LostEmail(id uuid.UUID) string { return id.String() + "@account.invalid" }
