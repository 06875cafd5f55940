package account

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

// MailKind is what a mail is about.
type MailKind string

// The kinds of mails.
const (
	// MailResetPassword has the link to a new password.
	MailResetPassword MailKind = "reset_password"
	// MailSignUp has the link that completes a sign-up, or says that the address has an account.
	MailSignUp MailKind = "sign_up"
	// MailVerifyEmail has the link that verifies the address of an account.
	MailVerifyEmail MailKind = "verify_email"
	// MailConfirmEmailChange goes to the account's present address, and MailChangeEmail to the new one.
	MailConfirmEmailChange MailKind = "confirm_email_change"
	MailChangeEmail        MailKind = "change_email"
)

// MailInvitation has the link to an invitation.
const MailInvitation MailKind = "invitation"

// MailWebhookDisabled tells an account's owners that attempts have disabled one of its webhooks.
const MailWebhookDisabled MailKind = "webhook_disabled"

// MailSecurityNotice tells of an entry in the audit log, see Notice.
const MailSecurityNotice MailKind = "security_notice"

// MailKinds are the kinds that this version sends.
var MailKinds = []MailKind{
	MailResetPassword, MailSignUp, MailVerifyEmail, MailConfirmEmailChange, MailChangeEmail, MailInvitation, MailWebhookDisabled,
	MailSecurityNotice,
}

// LinkLifetime is how long a mailed link is valid.
const LinkLifetime = time.Hour

// LinkPurpose is the purpose of a link that verifies an address.
type LinkPurpose string

// The purposes of links. A change of a verified address is confirmed at that address before the new address gets its link.
const (
	VerifyEmail        LinkPurpose = "verify_email"
	ConfirmEmailChange LinkPurpose = "confirm_email_change"
	ChangeEmail        LinkPurpose = "change_email"
)

// NewLinkToken returns the token of a mailed link: 32 random bytes in base64url. Only its HashToken is stored.
func NewLinkToken() string {
	var token [32]byte
	_, _ = rand.Read(token[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(token[:])
}
