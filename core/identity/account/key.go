package account

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/tokenbucket"
)

// The limits of API keys.
const (
	MaxKeys        = 100
	longestKeyName = 64
	longestLife    = 10 * 365 * 24 * time.Hour
	longestGrace   = 24 * time.Hour
)

// Key is the metadata of an API key; its text is shown once, at creation.
type Key struct {
	ID          uuid.UUID
	AccountID   uuid.UUID
	Name        string
	Hash        apikey.Hash
	Start       string
	Environment network.Environment
	Enabled     bool
	// ExpiresAt is the time from which the key is rejected, nil for never.
	ExpiresAt *time.Time
	// LastUsedAt is nil until the key is first used.
	LastUsedAt *time.Time
	Limit      Limit
	// LimitBucket is the id of the key's rate limit bucket: its own, or that of the first key in a chain of rotations, so that a
	// rotation does not refill the bucket.
	LimitBucket uuid.UUID
	// RotatedAt is the time at which another key replaced this one, nil for never. A rotated key counts as deleted from its
	// ExpiresAt on.
	RotatedAt *time.Time
	// Scopes are the key's permissions, at least one.
	Scopes apikey.Scopes
	// Networks are the networks from which the key may be used, as ParseNetworks returns them; empty means any.
	Networks  []netip.Prefix
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Bucket is the token bucket of the key's requests.
func (k *Key) Bucket() tokenbucket.Bucket {
	return tokenbucket.Bucket{Name: tokenbucket.KeyName(k.LimitBucket.String()), Rule: k.Limit.Rule()}
}

// KeyRequest holds the properties that an owner chooses for a new key.
type KeyRequest struct {
	Name string
	// Environment defaults to Test.
	Environment network.Environment
	// ExpiresIn is the key's lifetime, as ParseExpiresIn returns it; zero means no expiry.
	ExpiresIn time.Duration
	// Scopes are the key's permissions; zero means all.
	Scopes apikey.Scopes
	// Networks are the networks from which the key may be used, as ParseNetworks returns them; empty means any.
	Networks []netip.Prefix
	// FormToken is the SHA-256 of the form's one-time token, zero without a form. A form creates only one key.
	FormToken [32]byte
}

// NewKey creates a key and its text, which is not stored. It returns an *InvalidError for a field that breaks a rule.
func NewKey(accountID uuid.UUID, r KeyRequest, now time.Time) (*Key, apikey.Key, error) {
	name, err := parseName(r.Name, longestKeyName)
	if err != nil {
		return nil, apikey.Key{}, err
	}
	if r.Environment == "" {
		r.Environment = network.Test
	}
	if _, err := network.Parse(string(r.Environment)); err != nil {
		return nil, apikey.Key{}, &InvalidError{Field: "environment", Message: `must be "test" or "live"`}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, apikey.Key{}, err
	}
	text := apikey.New(r.Environment)
	return &Key{
		ID: id, AccountID: accountID, Name: name, Hash: text.Hash(), Start: text.Start(),
		Environment: r.Environment, Enabled: true, ExpiresAt: expiry(r.ExpiresIn, now), Limit: DefaultLimit, LimitBucket: id,
		Scopes: cmp.Or(r.Scopes, apikey.AllScopes), Networks: r.Networks,
		CreatedAt: now, UpdatedAt: now,
	}, text, nil
}

// ParseExpiresIn parses a key's lifetime in seconds, at least one second and at most ten years.
func ParseExpiresIn(seconds int64) (time.Duration, error) {
	const most = int64(longestLife / time.Second)
	if seconds < 1 || seconds > most {
		return 0, &InvalidError{Field: "expiresIn", Message: fmt.Sprintf("must be null or 1 to %d seconds", most)}
	}
	return time.Duration(seconds) * time.Second, nil
}
