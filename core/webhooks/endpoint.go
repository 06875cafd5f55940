// Package webhooks sends the events of the feed to the endpoints of their accounts: which URLs may be called, which events an endpoint
// receives, how a request is signed and secrets are sealed, when an attempt is retried and when an endpoint is disabled.
//
// Any number of processes share the work. One process at a time creates deliveries, and one at a time sends to an endpoint, which it
// leases. The state of deliveries is in the database, so a process may be killed at any time. The files whose names end in _rows.go have the
// SQL; attempt.go, delivery.go, endpoint.go, secret.go and url.go have the rules, which have no I/O.
package webhooks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/pkg/network"
)

// The limits of endpoints.
const (
	// MaxEndpoints is the maximum number of endpoints of an account, in both environments together.
	MaxEndpoints   = 20
	maxDescription = 256
	// maxTypes is the maximum number of names in a filter.
	maxTypes = 32
	// DefaultGrace is the default of how long a replaced secret signs, and maxGrace the maximum.
	DefaultGrace = 24 * time.Hour
	maxGrace     = 7 * 24 * time.Hour
)

// The errors that callers branch on.
var (
	ErrNotFound         = errors.New("the account has no such webhook")
	ErrDeliveryNotFound = errors.New("the webhook has no such delivery")
	ErrTooMany          = errors.New("the account has as many webhooks as it may")
	ErrDisabled         = errors.New("the webhook is disabled")
	ErrURLNotAllowed    = errors.New("the URL leads to a network that must not be called")
	// ErrNotConfigured means that CORE_WEBHOOK_SECRET_KEY is not set.
	ErrNotConfigured = errors.New("webhooks are not configured")
)

// Reason is why an endpoint is disabled; it is empty for an enabled one.
type Reason string

// The reasons.
const (
	// DisabledByOwner means that the account disabled the endpoint.
	DisabledByOwner Reason = "owner"
	// DisabledGone is a 410 response (RFC 9110 section 15.5.11).
	DisabledGone Reason = "gone"
	// DisabledFailing means that every attempt failed for FailuresDisable, and that there were several.
	DisabledFailing Reason = "failing"
)

// Endpoint is a URL that an account's events are sent to.
type Endpoint struct {
	ID          uuid.UUID
	AccountID   uuid.UUID
	Environment network.Environment
	URL         string
	// Types are the filter's names as the owner wrote them, nil for all types.
	Types []string
	// Description is empty for none.
	Description    string
	Enabled        bool
	DisabledReason Reason
	// Secrets are sealed.
	Secrets SealedSecrets
	Health
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Owner returns the account and environment of the endpoint.
func (e *Endpoint) Owner() feed.Owner {
	return feed.Owner{AccountID: e.AccountID, Environment: e.Environment}
}

// Draft holds the properties that an owner chooses for a new endpoint.
type Draft struct {
	URL string
	// Types are names of feed.ParseFilter, nil for all types.
	Types       []string
	Description string
}

// Rules are the operator's rules: which networks may be called and how secrets are sealed.
type Rules struct {
	Networks *outbound.Networks
	Sealer   *Sealer
}

// New creates an endpoint and its secret, whose text is not stored. It returns an *account.InvalidError for a field that breaks a
// rule, ErrURLNotAllowed for a URL with a literal address that must not be called, and ErrNotConfigured for nil rules.
func (r *Rules) New(owner feed.Owner, d Draft, now time.Time) (*Endpoint, Secret, error) {
	if r == nil {
		return nil, Secret{}, ErrNotConfigured
	}
	if _, err := network.Parse(string(owner.Environment)); err != nil {
		return nil, Secret{}, &account.InvalidError{Field: "environment", Message: `must be "test" or "live"`}
	}
	if err := r.CheckURL(d.URL, owner.Environment); err != nil {
		return nil, Secret{}, err
	}
	if err := checkTypes(d.Types); err != nil {
		return nil, Secret{}, err
	}
	description, err := parseDescription(d.Description)
	if err != nil {
		return nil, Secret{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, Secret{}, err
	}
	secret := NewSecret()
	return &Endpoint{
		ID: id, AccountID: owner.AccountID, Environment: owner.Environment, URL: d.URL, Types: d.Types, Description: description,
		Enabled: true, Secrets: SealedSecrets{Current: r.Sealer.Seal(id, secret)}, CreatedAt: now, UpdatedAt: now,
	}, secret, nil
}

// Change is a change of an endpoint; nil leaves a property unchanged.
type Change struct {
	URL *string
	// Types points to nil for all types.
	Types       *[]string
	Description *string
	Enabled     *bool
}

// Change applies a change and returns its description for the audit log, empty if it changes nothing. It returns the same errors as New. A new URL, and
// enabling the endpoint, reset its failures.
func (r *Rules) Change(e *Endpoint, c Change, now time.Time) (detail string, err error) {
	if r == nil {
		return "", ErrNotConfigured
	}
	next := *e
	var changes []string
	if c.URL != nil && *c.URL != e.URL {
		if err := r.CheckURL(*c.URL, e.Environment); err != nil {
			return "", err
		}
		next.URL, next.Health = *c.URL, Health{}
		changes = append(changes, "URL "+*c.URL)
	}
	if c.Types != nil {
		if err := checkTypes(*c.Types); err != nil {
			return "", err
		}
		if next.Types = *c.Types; !slices.Equal(next.Types, e.Types) || (next.Types == nil) != (e.Types == nil) {
			changes = append(changes, "types "+typesText(next.Types))
		}
	}
	if c.Description != nil {
		if next.Description, err = parseDescription(*c.Description); err != nil {
			return "", err
		}
		if next.Description != e.Description {
			changes = append(changes, fmt.Sprintf("description %q", next.Description))
		}
	}
	if c.Enabled != nil && *c.Enabled != e.Enabled {
		next.Enabled, next.Health, next.DisabledReason = *c.Enabled, Health{}, ""
		if !next.Enabled {
			next.DisabledReason = DisabledByOwner
		}
		changes = append(changes, map[bool]string{true: "enabled", false: "disabled"}[next.Enabled])
	}
	if len(changes) == 0 {
		return "", nil
	}
	next.UpdatedAt = now
	*e = next
	return strings.Join(changes, ", "), nil
}

// Describe describes the endpoint for the audit log.
func (e *Endpoint) Describe() string {
	return fmt.Sprintf("%s webhook to %s, types %s", e.Environment, e.URL, typesText(e.Types))
}

// Receives reports whether the endpoint receives events of a type. Types and names that only another release of this service knows
// count like all others.
func (e *Endpoint) Receives(t feed.Type) bool { return e.Types == nil || feed.MatchAny(e.Types, t) }

func checkTypes(types []string) error {
	if types == nil {
		return nil
	}
	if len(types) > maxTypes {
		return &account.InvalidError{Field: "types", Message: fmt.Sprintf("must have at most %d names", maxTypes)}
	}
	if _, err := feed.NewFilter(types); err != nil {
		return &account.InvalidError{Field: "types", Message: err.Error()}
	}
	return nil
}

func parseDescription(s string) (string, error) {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > maxDescription || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return "", &account.InvalidError{Field: "description", Message: fmt.Sprintf("must have at most %d characters", maxDescription)}
	}
	return s, nil
}

// typesText returns the types as text for the audit log.
func typesText(types []string) string {
	if types == nil {
		return "all"
	}
	return strings.Join(types, " ")
}
