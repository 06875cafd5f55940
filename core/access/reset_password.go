package access

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
)

// ResetPath is the page of a link to a new password, below the public URL. The token is in its query.
const ResetPath = "/console/reset-password"

// RequestPasswordReset mails a link for a new password to the account of an address. It does the same whether or not there is
// one: the account is looked up when the mail is sent. The link leads to the console's page, the only one that takes its token;
// redirectTo, which better-auth's client sends, must only be on this site. It returns ErrMailOff, an *account.InvalidError for a malformed address or another site, or a *LimitedError.
func (s *Service) RequestPasswordReset(ctx context.Context, v Visitor, email, redirectTo string) error {
	if s.MailQueued == nil {
		return ErrMailOff
	}
	email, err := account.ParseEmail(email)
	if err != nil {
		return err
	}
	if _, err := s.SitePath("redirectTo", redirectTo); err != nil {
		return err
	}
	return s.queueMail(ctx, v, postgres.Mail{Kind: account.MailResetPassword, Recipient: email})
}

// ResetPassword uses the token of a link: it sets the account's password and ends all of its sessions and links. A mailed link
// proves the address. An account that never proved its address, and never created a live key, loses the address to a new account
// with this password, and fresh is true. It returns an *account.InvalidError for a password that breaks the rule, ErrResetToken,
// ErrBusy, or a *LimitedError.
func (s *Service) ResetPassword(ctx context.Context, v Visitor, token, password string) (fresh bool, err error) {
	if err := account.CheckPassword("newPassword", password); err != nil {
		return false, err
	}
	if err := s.limits.signInPerIP.take(ctx, v.network()); err != nil {
		return false, err
	}
	now, tokenHash := s.Store.Now(), account.HashToken(token)
	owner, err := s.Store.AccountByResetToken(ctx, tokenHash, now) // this is first, so that a password is hashed only for a valid token
	if err == nil {
		fresh, err = s.resetPassword(ctx, v, owner, tokenHash, password)
	}
	if errors.Is(err, account.ErrNotFound) {
		return false, ErrResetToken
	}
	return fresh, err
}

func (s *Service) resetPassword(ctx context.Context, v Visitor, owner uuid.UUID, tokenHash [32]byte, password string) (fresh bool, err error) {
	hash, err := s.hash(ctx, password)
	if err != nil {
		return false, err
	}
	entry, err := account.NewAuditEntry(owner, v.Actor(), account.PasswordReset, s.Store.Now())
	if err != nil {
		return false, err
	}
	entry.Detail = "by a link; all sessions ended"
	reset, err := s.Store.ResetPassword(ctx, tokenHash, hash, entry)
	return reset != owner, err
}
