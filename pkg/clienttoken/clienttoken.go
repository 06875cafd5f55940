// Package clienttoken mints and verifies client tokens: each lets a browser report and read one intent until it expires, without an API key.
//
// A token is a prefix and, in base64url, a version, the hash of the API key it stands for, the intent's id, the time it expires and a MAC of
// all these. Its MAC key is derived from the secret that gateway and core share, so nothing is stored and no look-up is needed to reject a
// forged token. The package does not decide whether the key may be used, nor which requests a token allows.
package clienttoken

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/telemetry"
)

// MaxLifetime is the longest time for which a token is valid.
const MaxLifetime = 24 * time.Hour

// Prefix begins every token.
const Prefix = "ct_"

const (
	version = 1
	// purpose binds the MAC key to this use of the shared secret (RFC 5869 section 3.2).
	purpose = "intents client token v1"

	keyAt      = 1
	transferAt = keyAt + sha256.Size
	expiryAt   = transferAt + len(uuid.UUID{})
	macAt      = expiryAt + 8
	rawLen     = macAt + sha256.Size
)

var (
	// ErrMalformed means that a text is no token.
	ErrMalformed = errors.New("a client token is ct_ and 119 characters of base64url")
	// ErrForged means that the token was not minted with this secret, or was changed since.
	ErrForged = errors.New("the client token was not minted with this secret")

	encoding = base64.RawURLEncoding.Strict()
	textLen  = len(Prefix) + encoding.EncodedLen(rawLen)
)

// Claims are what a token says.
type Claims struct {
	// Key is the hash of the API key that the token was minted with.
	Key apikey.Hash
	// TransferID is the only intent that the token is for.
	TransferID uuid.UUID
	// Expires is when the token expires, in whole seconds.
	Expires time.Time
}

// Expired reports whether the token may no longer be used.
func (c *Claims) Expired(now time.Time) bool { return !now.Before(c.Expires) }

// IsFor reports whether the text is the id of the token's intent, in the one spelling that responses have.
func (c *Claims) IsFor(transferID []byte) bool { return c.TransferID.String() == string(transferID) }

// Minter mints and verifies tokens with one secret. It is safe for concurrent use.
type Minter struct{ macKey []byte }

// NewMinter returns the minter of a secret that gateway and core share.
func NewMinter(secret telemetry.Secret) *Minter {
	macKey, err := hkdf.Key(sha256.New, []byte(secret.Reveal()), nil, purpose, sha256.Size)
	if err != nil {
		panic(err) // cannot fail: the key is shorter than 255 digests
	}
	return &Minter{macKey}
}

// Mint returns the token with these claims. It cuts Expires to whole seconds.
func (m *Minter) Mint(c Claims) string {
	raw := make([]byte, macAt, rawLen)
	raw[0] = version
	copy(raw[keyAt:], c.Key[:])
	copy(raw[transferAt:], c.TransferID[:])
	binary.BigEndian.PutUint64(raw[expiryAt:], uint64(c.Expires.Unix())) //nolint:gosec // after 1970
	return Prefix + encoding.EncodeToString(m.mac(raw))
}

// Verify returns the claims of a token, also of an expired one. Its errors are ErrMalformed and ErrForged.
func (m *Minter) Verify(text []byte) (Claims, error) {
	rest, prefixed := bytes.CutPrefix(text, []byte(Prefix))
	if !prefixed || len(text) != textLen {
		return Claims{}, ErrMalformed
	}
	var room [rawLen]byte
	if n, err := encoding.Decode(room[:], rest); err != nil || n != rawLen || room[0] != version {
		return Claims{}, ErrMalformed
	}
	raw := room[:]
	if !hmac.Equal(m.mac(raw[:macAt:macAt]), raw) {
		return Claims{}, ErrForged
	}
	return Claims{
		Key:        apikey.Hash(raw[keyAt:transferAt]),
		TransferID: uuid.UUID(raw[transferAt:expiryAt]),
		Expires:    time.Unix(int64(binary.BigEndian.Uint64(raw[expiryAt:])), 0).UTC(), //nolint:gosec // as it was minted
	}, nil
}

// mac returns the claims with their MAC appended.
func (m *Minter) mac(claims []byte) []byte {
	h := hmac.New(sha256.New, m.macKey)
	_, _ = h.Write(claims) // never fails
	return h.Sum(claims)
}

// String redacts the key, so that a minter printed by accident stays secret.
func (*Minter) String() string { return "[redacted]" }

// GoString redacts the key.
func (m *Minter) GoString() string { return m.String() }

// LogValue redacts the key.
func (m *Minter) LogValue() slog.Value { return slog.StringValue(m.String()) }
