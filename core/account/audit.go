package account

import (
	"time"

	"github.com/google/uuid"
)

// Actor is who did something: the account's owner in a browser, or an operator at a prompt.
type Actor struct {
	Operator bool
	// IPAddress and UserAgent are where the owner came from, empty for an operator.
	IPAddress string
	UserAgent string
}

// Action is what was done.
type Action string

// Every action that the audit log knows.
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
)

// AuditEntry is one line of an account's audit log.
type AuditEntry struct {
	ID         uuid.UUID
	AccountID  uuid.UUID
	OccurredAt time.Time
	Actor      Actor
	Action     Action
	// KeyID and KeyName are the key an action was about, nil and empty for one about the account.
	KeyID   *uuid.UUID
	KeyName string
	// Detail says more in words, empty where the action says it all.
	Detail string
}

// NewAuditEntry makes an entry about an account. What the actor claims of itself is clipped.
func NewAuditEntry(accountID uuid.UUID, actor Actor, action Action, now time.Time) (AuditEntry, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return AuditEntry{}, err
	}
	actor.IPAddress, actor.UserAgent = clip(actor.IPAddress), clip(actor.UserAgent)
	return AuditEntry{ID: id, AccountID: accountID, OccurredAt: now, Actor: actor, Action: action}, nil
}

// OfKey is the entry with the key that the action was about, such as `disabled`.
func (e AuditEntry) OfKey(k *Key, detail string) AuditEntry {
	id := k.ID
	e.KeyID, e.KeyName, e.Detail = &id, k.Name, detail
	return e
}
