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
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

const longestName = 128

// The errors that callers branch on.
var (
	ErrEmailTaken    = errors.New("an account with this e-mail address exists")
	ErrIdentityTaken = errors.New("another account has this identity")
	ErrNotFound      = errors.New("no such account, session or key")
	ErrNotEnded      = errors.New("the account has not ended")
	ErrTooMany       = errors.New("the account has as many keys as it may")
	ErrFormUsed      = errors.New("the form was sent already")
	ErrKeyExpired    = errors.New("the key has expired")
	ErrKeyRotated    = errors.New("the key was rotated and is on its way out")
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
	email, err := ParseEmail(email)
	if err != nil {
		return nil, err
	}
	if domain := email[strings.LastIndexByte(email, '@')+1:]; domain == "invalid" || strings.HasSuffix(domain, ".invalid") {
		return nil, &InvalidError{Field: "email", Message: "must not be under .invalid, where nobody has an address"}
	}
	return newAccount(name, email, passwordHash, now)
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
	return &Account{ID: id, Name: name, Email: email, PasswordHash: passwordHash, CreatedAt: now, UpdatedAt: now}, nil
}

// ParseEmail reads one bare address (RFC 5322 addr-spec, at most the 254 characters of RFC 5321) in lower case.
func ParseEmail(s string) (string, error) {
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || len(s) > 254 || unstorable(s) {
		return "", &InvalidError{Field: "email", Message: "must be an e-mail address such as name@example.com"}
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
