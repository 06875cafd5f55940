package account

import (
	"time"

	"github.com/google/uuid"
)

// Actor is the author of an action: the account's owner in a browser, or an operator on the command line.
type Actor struct {
	Operator bool
	// IPAddress and UserAgent are the owner's browser, empty for an operator.
	IPAddress string
	UserAgent string
}

// Action is the kind of an audit log entry.
type Action string

// The actions of the audit log.
const (
	SignedUp        Action = "signed_up"
	SignedIn        Action = "signed_in"
	SessionsRevoked Action = "sessions_revoked"
	PasswordReset   Action = "password_reset"
	AccountDisabled Action = "account_disabled"
	AccountEnabled  Action = "account_enabled"
	AccountDeleted  Action = "account_deleted"
	KeyCreated      Action = "key_created"
	KeyUpdated      Action = "key_updated"
	KeyRotated      Action = "key_rotated"
	KeyDeleted      Action = "key_deleted"

	WebhookCreated       Action = "webhook_created"
	WebhookUpdated       Action = "webhook_updated"
	WebhookSecretRotated Action = "webhook_secret_rotated"
	WebhookDeleted       Action = "webhook_deleted"
	WebhookReplayed      Action = "webhook_replayed"
)

// AuditEntry is one line of an account's audit log.
type AuditEntry struct {
	ID         uuid.UUID
	AccountID  uuid.UUID
	OccurredAt time.Time
	Actor      Actor
	Action     Action
	// KeyID and KeyName are the action's key, nil and empty for an action on the account.
	KeyID   *uuid.UUID
	KeyName string
	// Detail is further text, empty for none.
	Detail string
}

// NewAuditEntry makes an entry about an account, with the actor's user agent clipped.
func NewAuditEntry(accountID uuid.UUID, actor Actor, action Action, now time.Time) (AuditEntry, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return AuditEntry{}, err
	}
	actor.IPAddress, actor.UserAgent = clip(actor.IPAddress), clip(actor.UserAgent)
	return AuditEntry{ID: id, AccountID: accountID, OccurredAt: now, Actor: actor, Action: action}, nil
}

// OfWebhook is the entry with the webhook that the action was about and what was done.
func (e AuditEntry) OfWebhook(id uuid.UUID, detail string) AuditEntry {
	e.Detail = id.String()
	if detail != "" {
		e.Detail += ": " + detail
	}
	return e
}

// OfKey is the entry with the key that the action was about, such as `disabled`.
func (e AuditEntry) OfKey(k *Key, detail string) AuditEntry {
	id := k.ID
	e.KeyID, e.KeyName, e.Detail = &id, k.Name, detail
	return e
}
