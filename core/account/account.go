// Package account defines who uses the service: accounts, their passwords, browser sessions and API keys, and the
// rules each of them keeps.
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
	// PasswordHash is an Argon2id hash in PHC string format.
	PasswordHash string
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// What callers branch on.
var (
	ErrEmailTaken = errors.New("an account with this e-mail address exists")
	ErrNotFound   = errors.New("no such account, session or key")
	ErrTooMany    = errors.New("the account has as many keys as it may")
)

// InvalidError is a field that breaks a rule, in words for the client.
type InvalidError struct {
	// Field is the field's name as clients write it.
	Field   string
	Message string
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Message }

// New makes an account. The name defaults to the e-mail address; the address is kept in lower case.
func New(name, email, passwordHash string, now time.Time) (*Account, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(name) == "" {
		name = email
	}
	if name, err = parseName(name, 128); err != nil {
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
	if err != nil || parsed.Address != s || len(s) > 254 || strings.IndexByte(s, 0) >= 0 {
		return "", &InvalidError{Field: "email", Message: "must be an e-mail address such as name@example.com"}
	}
	return strings.ToLower(s), nil
}

func parseName(s string, longest int) (string, error) {
	s = strings.TrimSpace(s)
	if n := utf8.RuneCountInString(s); n < 1 || n > longest || strings.IndexByte(s, 0) >= 0 {
		return "", &InvalidError{Field: "name", Message: fmt.Sprintf("must have 1 to %d characters", longest)}
	}
	return s, nil
}
