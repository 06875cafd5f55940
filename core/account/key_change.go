package account

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/apikey"
)

// KeyChange is what an owner changes of a key; nil leaves a property as it is.
type KeyChange struct {
	Name    *string
	Enabled *bool
	// ExpiresIn is how long the key will work from now on, as ParseExpiresIn gives it; zero for ever.
	ExpiresIn *time.Duration
}

// Change makes a change and tells what is different now, in words for the audit log. It returns an *InvalidError for a
// name that breaks the rule, and ErrKeyRotated for a new expiry of a key that was rotated: its grace is fixed.
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
	k.UpdatedAt = now
	if len(changes) == 0 {
		return "nothing changed", nil
	}
	return strings.Join(changes, ", "), nil
}

// Rotate makes the key that takes this one's place: of the same name, environment, state, expiry and limit, and out of
// the same bucket. With a grace, this key works on until it ends, but no longer than it would have; with none, the
// caller deletes it. It returns ErrKeyExpired or ErrKeyRotated for a key that has no place to give.
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

// ParseGracePeriod reads for how many seconds a rotated key works on, at most a day.
func ParseGracePeriod(seconds int64) (time.Duration, error) {
	const most = int64(longestGrace / time.Second)
	if seconds < 0 || seconds > most {
		return 0, &InvalidError{Field: "gracePeriod", Message: fmt.Sprintf("must be 0 to %d seconds", most)}
	}
	return time.Duration(seconds) * time.Second, nil
}

// Describe tells the key's environment and expiry in words for the audit log.
func (k *Key) Describe() string { return string(k.Environment) + " key, " + k.expiryText() }

func (k *Key) expiryText() string {
	if k.ExpiresAt == nil {
		return "never expires"
	}
	return "expires " + k.ExpiresAt.UTC().Format(time.RFC3339)
}

// expiry is the moment at which a lifetime that begins now ends, nil for one without end.
func expiry(lifetime time.Duration, now time.Time) *time.Time {
	if lifetime == 0 {
		return nil
	}
	at := now.Add(lifetime)
	return &at
}
