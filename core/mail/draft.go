package mail

import (
	"time"

	"github.com/google/uuid"
)

// Kind is what a mail is about.
type Kind string

// The kinds of mails. Each is composed by the room whose noun it is about.
const (
	// KindResetPassword has the link to a new password.
	KindResetPassword Kind = "reset_password"
	// KindSignUp has the link that completes a sign-up, or says that the address has an account.
	KindSignUp Kind = "sign_up"
	// KindVerifyEmail has the link that verifies the address of an account.
	KindVerifyEmail Kind = "verify_email"
	// KindConfirmEmailChange goes to the account's present address, and KindChangeEmail to the new one.
	KindConfirmEmailChange Kind = "confirm_email_change"
	KindChangeEmail        Kind = "change_email"
	// KindInvitation has the link to an invitation.
	KindInvitation Kind = "invitation"
	// KindWebhookDisabled tells an account's owners that attempts have disabled one of its webhooks.
	KindWebhookDisabled Kind = "webhook_disabled"
	// KindSecurityNotice tells of an entry in the audit log.
	KindSecurityNotice Kind = "security_notice"
)

// Draft is a mail without text: the message is composed when it is sent, so that the database contains no links.
type Draft struct {
	Kind      Kind
	Recipient string
	// AccountID is the account that requested the mail, uuid.Nil for mails to the account that has the address, if any.
	AccountID uuid.UUID
	// NewEmail is the account's new address, in a mail to the current one.
	NewEmail string
	// Callback is the path on this site to which the link finally leads, empty for the console.
	Callback string
	// InvitationID is the invitation that the mail is about.
	InvitationID uuid.UUID
	// WebhookID is the webhook that the mail is about.
	WebhookID uuid.UUID
	// AuditEntryID is the entry of the account's audit log that the mail is about.
	AuditEntryID uuid.UUID
	// Name and PasswordHash are what the link of a sign-up gives to the account, empty for other mails.
	Name, PasswordHash string
}

// Queued is a row of the outbox.
type Queued struct {
	Draft
	ID uuid.UUID
	// Attempts includes this one.
	Attempts int
	// Age is the time since the mail was requested.
	Age time.Duration
}
