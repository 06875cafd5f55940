package identity

import (
	"context"
	"errors"
	"strings"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// notice is who gets a mail about an audit entry: nobody where no mail is sent.
func (s *base) notice(to account.Notice) account.Notice {
	if s.MailQueued == nil {
		return ""
	}
	return to
}

// noticesQueued is called after a transaction that may have queued notices.
func (s *base) noticesQueued() {
	if s.MailQueued != nil {
		s.MailQueued()
	}
}

// composeSecurityNotice writes the mail about an entry in the audit log, or nothing if the mailbox has got noticesPerHour of its action
// on its account.
func (s *Service) composeSecurityNotice(ctx context.Context, queued *mail.Queued) (*mail.Message, error) {
	entry, name, err := s.Store.AuditEntry(ctx, queued.AccountID, queued.AuditEntryID)
	if err != nil {
		return nil, err
	}
	if queued.Attempts <= 1 {
		err := s.limits.noticesOfAction.take(ctx, string(entry.Action)+":"+entry.AccountID.String()+":"+digest(queued.Recipient))
		if _, limited := errors.AsType[*LimitedError](err); limited {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	n := mail.SecurityNotice{
		Link: s.mailLink(s.PublicURL + noticePages[entry.Action]), Action: string(entry.Action), Account: name, KeyName: entry.KeyName,
		At: entry.OccurredAt, By: entry.PersonEmail, IPAddress: entry.Actor.IPAddress, PerHour: noticesPerHour,
	}
	if entry.Actor.UserAgent != "" {
		n.Browser = account.BrowserName(entry.Actor.UserAgent)
	}
	switch entry.Action { //nolint:exhaustive // these details are an address and roles
	case account.MemberJoined, account.MemberChanged, account.MemberInvited, account.MemberRemoved:
		n.Member = entry.Detail
		n.NewOwner = entry.Action == account.MemberJoined || strings.Contains(entry.Detail, ": "+string(account.RoleOwner)+", was ")
	}
	return mail.Write(queued.Recipient, mail.Notice, n)
}

// noticePages are the pages of the console on which a person undoes what a notice tells of. A person whose password somebody else has
// set can only reset it.
var noticePages = map[account.Action]string{
	account.PasswordChanged:      forgotPath,
	account.PasswordReset:        forgotPath,
	account.EmailChanged:         "", // the address can no longer reset the password
	account.AccountDeleted:       "", // nobody can undo it
	account.IdentityLinked:       homePath + "/account",
	account.IdentityUnlinked:     homePath + "/account",
	account.PasskeyAdded:         homePath + "/account",
	account.PasskeyDeleted:       homePath + "/account",
	account.PasskeyRefused:       homePath + "/account",
	account.PasskeysRemoved:      homePath + "/account",
	account.KeyCreated:           homePath,
	account.KeyUpdated:           homePath,
	account.KeyRotated:           homePath,
	account.MemberInvited:        homePath + "/members",
	account.MemberJoined:         homePath + "/members",
	account.MemberChanged:        homePath + "/members",
	account.MemberRemoved:        homePath + "/members",
	account.WebhookCreated:       homePath + "/webhooks",
	account.WebhookUpdated:       homePath + "/webhooks",
	account.WebhookSecretRotated: homePath + "/webhooks",
}

// forgotPath is the page that asks for a link to a new password.
const forgotPath = homePath + "/forgot-password"
