package webhooks

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

const (
	// secretPrefix and secretBytes follow Standard Webhooks 1.0, which requires 24 to 64 random bytes.
	secretPrefix = "whsec_"
	secretBytes  = 32
	// keyBytes is the size of an AES-256 key.
	keyBytes = 32
)

// Secret is the symmetric key of an endpoint's signatures. It prints as [redacted].
type Secret struct{ key []byte }

// NewSecret returns a random secret.
func NewSecret() Secret {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails
	return Secret{key}
}

// Reveal returns the text that its owner is shown once: whsec_ and base64 (RFC 4648 section 4).
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

func (s Secret) String() string { return "[redacted]" }

// GoString redacts %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue redacts structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Sign returns the value of the header webhook-signature for a message: a v1 signature per secret, the newest first.
func Sign(secrets []Secret, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for n, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[n] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

// SealedSecrets are the stored, encrypted secrets of an endpoint.
type SealedSecrets struct {
	Current []byte
	// Previous also signs until PreviousUntil; both are nil without a rotation.
	Previous      []byte
	PreviousUntil *time.Time
}

// Rotate replaces the endpoint's secret and returns the new one, whose text is not stored, with a description for the audit log.
// The replaced secret also signs for the grace period, see ParseGracePeriod; one that was replaced earlier no longer signs. It
// returns ErrNotConfigured for nil rules.
func (r *Rules) Rotate(e *Endpoint, grace time.Duration, now time.Time) (secret Secret, detail string, err error) {
	if r == nil {
		return Secret{}, "", ErrNotConfigured
	}
	secret = NewSecret()
	next := SealedSecrets{Current: r.Sealer.Seal(e.ID, secret)}
	if grace > 0 {
		until := now.Add(grace)
		next.Previous, next.PreviousUntil = e.Secrets.Current, &until
	}
	e.Secrets, e.UpdatedAt = next, now
	return secret, "the secret before it signs until " + now.Add(grace).UTC().Format(time.RFC3339), nil
}

// ParseGracePeriod parses the seconds for which a replaced secret signs, at most a week.
func ParseGracePeriod(seconds int64) (time.Duration, error) {
	const most = int64(maxGrace / time.Second)
	if seconds < 0 || seconds > most {
		return 0, &account.InvalidError{Field: "gracePeriod", Message: fmt.Sprintf("must be 0 to %d seconds", most)}
	}
	return time.Duration(seconds) * time.Second, nil
}

// Sealer encrypts secrets for the database with AES-256-GCM. The associated data is the endpoint's id, so that a sealed secret is
// invalid in another row.
type Sealer struct{ current, previous cipher.AEAD }

// NewSealer takes the current key, which seals and opens, and the previous key, which only opens, or nil. A key has 32 bytes.
func NewSealer(current, previous []byte) (*Sealer, error) {
	s := &Sealer{}
	var err error
	if s.current, err = newAEAD(current); err != nil {
		return nil, err
	}
	if previous != nil {
		s.previous, err = newAEAD(previous)
	}
	return s, err
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, fmt.Errorf("a key of AES-256 has %d bytes, not %d", keyBytes, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// ParseKey parses a key of 32 bytes in hexadecimal or base64.
func ParseKey(text string) ([]byte, error) {
	if key, err := hex.DecodeString(text); err == nil && len(key) == keyBytes {
		return key, nil
	}
	if key, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && len(key) == keyBytes {
		return key, nil
	}
	return nil, fmt.Errorf("must be %d bytes in hexadecimal or base64; make one with: openssl rand -hex %d", keyBytes, keyBytes)
}

// Seal encrypts the secret of an endpoint: nonce, ciphertext and tag.
func (s *Sealer) Seal(endpointID uuid.UUID, secret Secret) []byte {
	return s.current.Seal(nil, nil, secret.key, endpointID[:])
}

// SealResponse encrypts the response that creates an endpoint, which has the secret.
func (s *Sealer) SealResponse(endpointID uuid.UUID, response []byte) []byte {
	return s.current.Seal(nil, nil, response, responseData(endpointID))
}

// OpenResponse decrypts a sealed response with the current or the previous key.
func (s *Sealer) OpenResponse(endpointID uuid.UUID, sealed []byte) ([]byte, error) {
	response, err := s.current.Open(nil, nil, sealed, responseData(endpointID))
	if err != nil && s.previous != nil {
		response, err = s.previous.Open(nil, nil, sealed, responseData(endpointID))
	}
	if err != nil {
		return nil, errSealed
	}
	return response, nil
}

// responseData is the associated data of a sealed response, which is invalid as a secret.
func responseData(endpointID uuid.UUID) []byte { return append(endpointID[:], "response"...) }

// errSealed means that a secret was sealed with a key that core does not have.
var errSealed = errors.New("the secret cannot be opened; is CORE_WEBHOOK_SECRET_KEY the key that it was sealed with?")

// Open decrypts an endpoint's secret with the current or the previous key. outdated is true for the previous key.
func (s *Sealer) Open(endpointID uuid.UUID, sealed []byte) (secret Secret, outdated bool, err error) {
	if key, err := s.current.Open(nil, nil, sealed, endpointID[:]); err == nil {
		return Secret{key}, false, nil
	}
	if s.previous != nil {
		if key, err := s.previous.Open(nil, nil, sealed, endpointID[:]); err == nil {
			return Secret{key}, true, nil
		}
	}
	return Secret{}, false, errSealed
}

// Secrets opens the secrets that sign at a time, the newest first. It omits a replaced secret that cannot be opened, so that a
// rotation recovers from a lost key.
func (s *Sealer) Secrets(e *Endpoint, now time.Time) ([]Secret, error) {
	current, _, err := s.Open(e.ID, e.Secrets.Current)
	if err != nil {
		return nil, err
	}
	secrets := []Secret{current}
	if e.Secrets.PreviousUntil != nil && now.Before(*e.Secrets.PreviousUntil) {
		if previous, _, err := s.Open(e.ID, e.Secrets.Previous); err == nil {
			secrets = append(secrets, previous)
		}
	}
	return secrets, nil
}

// Revoked reports whether an attempt that began with the endpoint as it was before must not be made as the endpoint is now: its URL
// has changed, or its newest signature is by a secret that no longer signs.
func (s *Sealer) Revoked(before, e *Endpoint, now time.Time) bool {
	if before.URL != e.URL {
		return true
	}
	if bytes.Equal(before.Secrets.Current, e.Secrets.Current) {
		return false
	}
	signing, err := s.Secrets(e, now)
	used, _, usedErr := s.Open(before.ID, before.Secrets.Current)
	return err != nil || usedErr != nil ||
		!slices.ContainsFunc(signing, func(valid Secret) bool { return hmac.Equal(valid.key, used.key) })
}

// HasPrevious reports whether there is a previous key, so that Reseal may have something to do.
func (s *Sealer) HasPrevious() bool { return s.previous != nil }

// Reseal seals secrets of the previous key under the current key; changed is false if there was none. A replaced secret that
// opens under neither key is unchanged.
func (s *Sealer) Reseal(e *Endpoint) (changed bool, err error) {
	for _, sealed := range []*[]byte{&e.Secrets.Current, &e.Secrets.Previous} {
		secret, outdated, err := s.Open(e.ID, *sealed)
		switch {
		case err != nil && sealed == &e.Secrets.Current:
			return false, err
		case outdated:
			*sealed, changed = s.Seal(e.ID, secret), true
		}
	}
	return changed, nil
}
