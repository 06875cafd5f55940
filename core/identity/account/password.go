package account

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"github.com/ccojocar/zxcvbn-go"
	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Passwords hashes and checks passwords with Argon2id, a few at a time: each hash takes 19 MiB and a processor for tens of
// milliseconds, and a flood of sign-ins must not starve the API of either.
type Passwords struct {
	slots  chan struct{}
	params argon2id.Params
	decoy  string // has the form of a hash with these parameters, and is that of no known password
}

// OWASP are the first Argon2id parameters of OWASP's Password Storage Cheat Sheet.
var OWASP = argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// NewPasswords hashes new passwords with these parameters. Others are checked with those of their hashes.
func NewPasswords(params argon2id.Params) *Passwords {
	none := func(bytes uint32) string { return base64.RawStdEncoding.EncodeToString(make([]byte, bytes)) }
	return &Passwords{
		slots: make(chan struct{}, max(1, runtime.NumCPU()/2)), params: params,
		decoy: fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, params.Memory, params.Iterations, params.Parallelism,
			none(params.SaltLength), none(params.KeyLength)),
	}
}

const (
	// minPassword and maxPassword bound a password in characters, as NFKC has them.
	minPassword, maxPassword = 8, 128
	// maxEstimated is the longest password whose guesses are estimated, which takes milliseconds; none that long is common.
	maxEstimated = 32
	// minEntropy is in bits: a password of less is among the first 4,096 guesses.
	minEntropy = 12
)

// CheckPassword returns an *InvalidError of the field for a new password that does not have 8 to 128 characters, or that is guessed
// among the first: by zxcvbn's lists of common passwords, names and words, with the usual digits, case and substitutions.
func CheckPassword(field, password string) error {
	password = normalize(password)
	n := utf8.RuneCountInString(password)
	if n < minPassword || n > maxPassword {
		return &InvalidError{Field: field, Message: "must have 8 to 128 characters"}
	}
	if n <= maxEstimated && zxcvbn.PasswordStrength(password, nil).Entropy < minEntropy {
		return &InvalidError{Field: field, Message: "is one of the most common passwords, which are guessed first; choose another"}
	}
	return nil
}

// Hash validates a new password and hashes it.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword("password", password); err != nil {
		return "", err
	}
	if err := p.acquire(ctx); err != nil {
		return "", err
	}
	defer p.release()
	hash, err := argon2id.CreateHash(normalize(password), &p.params)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// Matches reports whether the password matches the hash. An empty hash, for an account that does not exist, takes as long as any
// other and never matches, so that the response time does not reveal which accounts exist. A password that NFKC changes is tried in its
// raw form too, of which hashes from before may be.
func (p *Passwords) Matches(ctx context.Context, password, hash string) (bool, error) {
	if err := p.acquire(ctx); err != nil {
		return false, err
	}
	defer p.release()
	against := hash
	if hash == "" {
		against = p.decoy
	}
	forms := []string{normalize(password)}
	if forms[0] != password {
		forms = append(forms, password)
	}
	matches := false
	for _, form := range forms { // all of them, whatever matches, so that the time tells nothing
		same, err := argon2id.ComparePasswordAndHash(form, against)
		if err != nil {
			return false, fmt.Errorf("check a password: %w", err)
		}
		matches = matches || same
	}
	return matches && hash != "", nil
}

// normalize returns a password in the form that is hashed, NFKC (NIST SP 800-63B-4, section 3.1.1.2): the same characters can be typed
// in several ways, as composed letters or with their accents apart.
func normalize(password string) string { return norm.NFKC.String(password) }

func (p *Passwords) acquire(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait to hash a password: %w", ctx.Err())
	}
}

func (p *Passwords) release() { <-p.slots }
