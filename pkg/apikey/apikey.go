// Package apikey parses and generates API keys: a prefix that names the environment and 64 random characters.
//
// Only Parse and New create a Key, so every Key is well formed. Only Reveal returns the complete text; logs and errors get the
// redacted form.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"log/slog"

	"intents.internal/pkg/network"
)

const (
	testPrefix = "sk_test_"
	livePrefix = "sk_live_"
	prefixLen  = len(testPrefix)
	randomLen  = 64
	startLen   = 12
	alphabet   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// ErrMalformed is what Parse returns for a text that is not a well-formed key. It does not contain the text.
var ErrMalformed = errors.New("an API key is sk_test_ or sk_live_ and 64 letters and digits")

// Key is a well-formed API key. The zero value is no key.
type Key struct{ text string }

// Hash is the SHA-256 of the whole key, the only form in which a key is stored or sent between services. A key has 381 random
// bits, so an unsalted digest cannot be reversed by guessing.
type Hash [sha256.Size]byte

// Parse parses a presented key strictly: ^sk_(test|live)_[A-Za-z0-9]{64}$.
func Parse(s string) (Key, error) {
	if len(s) != prefixLen+randomLen || (s[:prefixLen] != testPrefix && s[:prefixLen] != livePrefix) {
		return Key{}, ErrMalformed
	}
	for i := prefixLen; i < len(s); i++ {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return Key{}, ErrMalformed
		}
	}
	return Key{text: s}, nil
}

// New generates a key for env from the system's secure random source. It panics if env is neither Test nor Live.
func New(env network.Environment) Key {
	text := make([]byte, 0, prefixLen+randomLen)
	text = append(text, prefix(env)...)
	var random [2 * randomLen]byte
	for len(text) < cap(text) {
		_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
		for _, b := range random {
			// Larger bytes would favour the first letters of the alphabet (modulo bias).
			if int(b) < 256/len(alphabet)*len(alphabet) && len(text) < cap(text) {
				text = append(text, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return Key{text: string(text)}
}

func prefix(env network.Environment) string {
	switch env {
	case network.Test:
		return testPrefix
	case network.Live:
		return livePrefix
	default:
		panic("apikey: no prefix for environment " + string(env))
	}
}

// Environment returns the environment that the prefix names.
func (k Key) Environment() network.Environment {
	if k.Prefix() == livePrefix {
		return network.Live
	}
	return network.Test
}

// Hash returns the SHA-256 of the whole key.
func (k Key) Hash() Hash {
	var text [prefixLen + randomLen]byte // on the stack; converting the string would allocate
	return sha256.Sum256(text[:copy(text[:], k.text)])
}

// Prefix returns sk_test_ or sk_live_.
func (k Key) Prefix() string { return k.text[:prefixLen] }

// Start returns the first 12 characters: enough for the owner to tell keys apart and far too few to guess one.
func (k Key) Start() string { return k.text[:startLen] }

// Reveal returns the whole key, for the one response that shows it to its owner.
func (k Key) Reveal() string { return k.text }

// String returns the redacted form, so that a key printed by accident stays secret.
func (k Key) String() string { return k.Prefix() + "[redacted]" }

// GoString returns the redacted form.
func (k Key) GoString() string { return k.String() }

// LogValue returns the redacted form.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }
