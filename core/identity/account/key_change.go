package account

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/apikey"
)

// KeyChange is a change of a key; nil leaves a property unchanged.
type KeyChange struct {
	Name    *string
	Enabled *bool
	// ExpiresIn is the key's lifetime from now on, as ParseExpiresIn returns it; zero means no expiry.
	ExpiresIn *time.Duration
	// Scopes are as ParseScopes returns them, Networks as ParseNetworks does.
	Scopes   *apikey.Scopes
	Networks *[]netip.Prefix
}

// Change applies a change and returns its description for the audit log, empty if it changes nothing. It returns an *InvalidError for a name that breaks the
// rule, and ErrKeyRotated for a new expiry of a rotated key: its grace period is fixed.
func (k *Key) Change(c KeyChange, now time.Time) (detail string, err error) {
	var changes []string
	if c.ExpiresIn != nil {
		if k.RotatedAt != nil {
			return "", ErrKeyRotated
		}
		k.ExpiresAt = expiry(*c.ExpiresIn, now)
		changes = append(changes, k.expiryText())
	}
	if c.Name != nil {
		name, err := parseName(*c.Name, longestKeyName)
		if err != nil {
			return "", err
		}
		if name != k.Name {
			changes = append(changes, fmt.Sprintf("name %q → %q", k.Name, name))
		}
		k.Name = name
	}
	if c.Enabled != nil && *c.Enabled != k.Enabled {
		k.Enabled = *c.Enabled
		changes = append(changes, map[bool]string{true: "enabled", false: "disabled"}[k.Enabled])
	}
	changes = append(changes, k.restrict(c)...)
	if len(changes) == 0 {
		return "", nil
	}
	k.UpdatedAt = now
	return strings.Join(changes, ", "), nil
}

// Rotate creates the key that replaces this one, with the same name, environment, state, expiry, limit, bucket, scopes and
// networks. With a grace period, this key stays valid until the period ends, but not beyond its own expiry; without one, the
// caller deletes it. It returns ErrKeyExpired or ErrKeyRotated for a key that is no longer valid.
func (k *Key) Rotate(grace time.Duration, now time.Time) (next *Key, text apikey.Key, err error) {
	if k.RotatedAt != nil {
		return nil, apikey.Key{}, ErrKeyRotated
	}
	if k.ExpiresAt != nil && !k.ExpiresAt.After(now) {
		return nil, apikey.Key{}, ErrKeyExpired
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, apikey.Key{}, err
	}
	text = apikey.New(k.Environment)
	next = &Key{
		ID: id, AccountID: k.AccountID, Name: k.Name, Hash: text.Hash(), Start: text.Start(),
		Environment: k.Environment, Enabled: k.Enabled, ExpiresAt: k.ExpiresAt, Limit: k.Limit, LimitBucket: k.LimitBucket,
		Scopes: k.Scopes, Networks: k.Networks,
		CreatedAt: now, UpdatedAt: now,
	}
	if grace == 0 {
		return next, text, nil
	}
	if end := now.Add(grace); k.ExpiresAt == nil || k.ExpiresAt.After(end) {
		k.ExpiresAt = &end
	}
	k.RotatedAt, k.UpdatedAt = &now, now
	return next, text, nil
}

// ParseGracePeriod parses the seconds for which a rotated key stays valid, at most a day.
func ParseGracePeriod(seconds int64) (time.Duration, error) {
	const most = int64(longestGrace / time.Second)
	if seconds < 0 || seconds > most {
		return 0, &InvalidError{Field: "gracePeriod", Message: fmt.Sprintf("must be 0 to %d seconds", most)}
	}
	return time.Duration(seconds) * time.Second, nil
}

// Describe returns the key's environment, expiry and restrictions for the audit log.
func (k *Key) Describe() string {
	text := string(k.Environment) + " key, " + k.expiryText()
	if k.Scopes != apikey.AllScopes {
		text += ", " + k.scopesText()
	}
	if len(k.Networks) > 0 {
		text += ", " + k.networksText()
	}
	return text
}

func (k *Key) expiryText() string {
	if k.ExpiresAt == nil {
		return "never expires"
	}
	return "expires " + k.ExpiresAt.UTC().Format(time.RFC3339)
}

// expiry returns the end of a duration from now, nil for the zero duration, which means no expiry.
func expiry(d time.Duration, now time.Time) *time.Time {
	if d == 0 {
		return nil
	}
	at := now.Add(d)
	return &at
}
