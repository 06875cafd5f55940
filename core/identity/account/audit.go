package account

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Actor is the author of an action: a member of the account in a browser, or an operator on the command line.
type Actor struct {
	Operator bool
	// PersonID is the acting member of the account, uuid.Nil for an operator and if nobody is signed in yet.
	PersonID uuid.UUID
	// IPAddress and UserAgent are the member's browser, empty for an operator.
	IPAddress string
	UserAgent string
}

// Action is the kind of an audit log entry.
type Action string

// The actions of the audit log.
const (
	SignedUp       Action = "signed_up"
	SignedIn       Action = "signed_in"
	SignInFailed   Action = "sign_in_failed"
	SignedOut      Action = "signed_out"
	ResetRequested Action = "reset_requested"
	// AccountSwitched is in the log of the account that a session acts on from then on.
	AccountSwitched Action = "account_switched"
	SessionsRevoked Action = "sessions_revoked"
	PasswordChanged Action = "password_changed"
	PasswordReset   Action = "password_reset"
	ResetLinkMade   Action = "reset_link_made"

	EmailVerified        Action = "email_verified"
	EmailChangeRequested Action = "email_change_requested"
	EmailChanged         Action = "email_changed"
	// EmailLost means that another person verified the address.
	EmailLost Action = "email_lost"

	AccountDisabled Action = "account_disabled"
	AccountEnabled  Action = "account_enabled"
	AccountDeleted  Action = "account_deleted"
	// AccountLimitChanged has the new limit as its detail.
	AccountLimitChanged Action = "account_limit_changed"
	IdentityLinked      Action = "identity_linked"
	IdentityUnlinked    Action = "identity_unlinked"
	PasskeyAdded        Action = "passkey_added"
	PasskeyDeleted      Action = "passkey_deleted"
	// PasskeyRefused means that the sign count of a passkey fell, as that of a copy does.
	PasskeyRefused Action = "passkey_refused"
	// PasskeysRemoved is the recovery by an operator.
	PasskeysRemoved Action = "passkeys_removed"

	AccountShared  Action = "account_shared"
	AccountRenamed Action = "account_renamed"
	KeyCreated     Action = "key_created"
	KeyUpdated     Action = "key_updated"
	KeyRotated     Action = "key_rotated"
	KeyDeleted     Action = "key_deleted"

	MemberInvited      Action = "member_invited"
	InvitationCanceled Action = "invitation_canceled"
	InvitationDeclined Action = "invitation_declined"
	MemberJoined       Action = "member_joined"
	MemberChanged      Action = "member_changed"
	MemberRemoved      Action = "member_removed"
	MemberLeft         Action = "member_left"

	// OriginsChanged has the new origins as its detail.
	OriginsChanged Action = "origins_changed"

	WebhookCreated       Action = "webhook_created"
	WebhookUpdated       Action = "webhook_updated"
	WebhookSecretRotated Action = "webhook_secret_rotated"
	WebhookDeleted       Action = "webhook_deleted"
	WebhookReplayed      Action = "webhook_replayed"

	// ScreeningRefused counts what was refused or left out because an address is on the operator's list. It says neither which nor where.
	ScreeningRefused Action = "screening_refused"
)

// Notice is who gets a mail about an audit entry, at the addresses that they have proven.
type Notice string

// The recipients of notices.
const (
	// NoticeToPerson goes to the person whose own account it is.
	NoticeToPerson Notice = "person"
	// NoticeToOwners goes to all owners of the account, also to the one who acted: it may have been somebody else in their browser.
	NoticeToOwners Notice = "owners"
)

// AuditEntry is one line of an account's audit log.
type AuditEntry struct {
	ID        uuid.UUID
	AccountID uuid.UUID
	// OccurredAt is the first time of an hourly entry, and the beginning of its hour where a version that knows no LastAt stored it.
	OccurredAt time.Time
	Actor      Actor
	Action     Action
	// KeyID and KeyName are the key that was changed or that acted, nil and empty for all other actions. If only the id is set,
	// storing the entry adds the name.
	KeyID   *uuid.UUID
	KeyName string
	// PersonName and PersonEmail are those of the acting member, or of the account's holder if no member is known, and empty for what
	// anybody can try. They are set only on entries that are read.
	PersonName, PersonEmail string
	// Detail is further text, empty for none.
	Detail string
	// Notice is who gets a mail about the entry, empty for nobody. It is not stored.
	Notice Notice
	// Subject makes the entry hourly, see Hourly, empty for an entry of its own. It is not stored.
	Subject string
	// Repeats is how often more the same was done in the hour of an hourly entry; one that is stored counts that often more. LastAt and LastDetail are of the last time, nil and empty
	// if there was one.
	Repeats    int
	LastAt     *time.Time
	LastDetail string
}

// NewAuditEntry creates an entry about an account, with the actor's user agent truncated.
func NewAuditEntry(accountID uuid.UUID, actor Actor, action Action, now time.Time) (AuditEntry, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return AuditEntry{}, err
	}
	actor.IPAddress, actor.UserAgent = clip(actor.IPAddress), clip(actor.UserAgent)
	return AuditEntry{ID: id, AccountID: accountID, OccurredAt: now, Actor: actor, Action: action}, nil
}

// NewHourlyEntry creates an hourly entry about an account, or about one that is yet to be found, for uuid.Nil. The subject is an account's
// id or e-mail address.
func NewHourlyEntry(accountID uuid.UUID, subject string, actor Actor, action Action, now time.Time) AuditEntry {
	actor.IPAddress, actor.UserAgent = clip(actor.IPAddress), clip(actor.UserAgent)
	return AuditEntry{AccountID: accountID, OccurredAt: now, Actor: actor, Action: action}.Hourly(subject)
}

// Hourly returns the entry of what may be done often: all of one subject, action, actor, address and hour are stored as one entry, whose id
// is derived from them.
func (e AuditEntry) Hourly(subject string) AuditEntry {
	e.Subject = subject
	e.ID = HourlyID(e.OccurredAt, "hourly audit entry", subject, string(e.Action), e.Actor.PersonID.String(), e.Actor.IPAddress)
	return e
}

// HourlyID is the id of all that has the same parts in one hour: a UUIDv7 of the hour.
func HourlyID(at time.Time, parts ...string) (id uuid.UUID) {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	copy(id[:], binary.BigEndian.AppendUint64(nil, uint64(at.Truncate(time.Hour).UnixMilli())<<16))
	copy(id[6:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// ByKey returns the hourly entry of an action by a key.
func (e AuditEntry) ByKey(id uuid.UUID) AuditEntry {
	e.KeyID = &id
	return e.Hourly(id.String())
}

// OfWebhook returns the entry with the changed webhook and a description of the change. An hourly entry is one of the webhook.
func (e AuditEntry) OfWebhook(id uuid.UUID, detail string) AuditEntry {
	if e.Subject != "" {
		e = e.Hourly(e.Subject + "\x00" + id.String())
	}
	e.Detail = id.String()
	if detail != "" {
		e.Detail += ": " + detail
	}
	return e
}

// OfKey returns the entry with the changed key and a detail such as `disabled`.
func (e AuditEntry) OfKey(k *Key, detail string) AuditEntry {
	id := k.ID
	e.KeyID, e.KeyName, e.Detail = &id, k.Name, detail
	return e
}
