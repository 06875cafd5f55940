package identity

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// ResetPath is the page of a link to a new password, below the public URL. The token is in its query.
const ResetPath = "/console/reset-password"

// RequestPasswordReset mails a link for a new password to the account of an address. It does the same whether or not there is
// one: the account is looked up when the mail is sent. The link leads to the console's page, the only one that takes its token;
// redirectTo, which better-auth's client sends, must only be on this site. It returns ErrMailOff, an *account.InvalidError for a
// malformed address or another site, or a *LimitedError.
func (s *Persons) RequestPasswordReset(ctx context.Context, client Client, email, redirectTo string) error {
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
	began := time.Now()
	if err := s.queueMail(ctx, client, mail.Draft{Kind: mail.KindResetPassword, Recipient: email}); err != nil {
		return err
	}
	err = s.Store.AuditAttempt(ctx, email, account.NewHourlyEntry(uuid.Nil, email, client.Actor(), account.ResetRequested, s.Store.Now()))
	waitForStep(ctx, began) // the entry is made only where there is an account
	return err
}

// ResetRequest is what somebody with a link to a new password asks for.
type ResetRequest struct {
	Token       string
	NewPassword string
	// UnlinkAccounts also ends the other ways to sign in, those of IdentitiesToReset.
	UnlinkAccounts bool
}

// IdentitiesToReset lists the other ways to sign in to the account of a link, which stay unless the reset ends them, oldest first. It
// lists none for a link that does not work.
func (s *Persons) IdentitiesToReset(ctx context.Context, token string) ([]account.LinkedIdentity, error) {
	return s.Store.IdentitiesByResetToken(ctx, account.HashToken(token), s.Store.Now())
}

// Reset is a password that was set by a link.
type Reset struct {
	// Fresh means that the password is that of a new account, see ResetPassword.
	Fresh bool
	// Device is for the browser's device cookie, so that the attempts of strangers do not keep the owner of the mailbox out.
	Device string
}

// ResetPassword uses the token of a link: it sets the account's password, ends all of its sessions, links and invitations, and makes
// the browser a known device. A mailed link proves the address. An account that never proved its address, and never created a live
// key, loses the address to a new account with this password, which is fresh. It returns an *account.InvalidError for a password that
// breaks the rule, ErrResetToken, ErrBusy, or a *LimitedError.
func (s *Persons) ResetPassword(ctx context.Context, client Client, r ResetRequest) (*Reset, error) {
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	if err := account.CheckPassword("newPassword", r.NewPassword); err != nil {
		return nil, err
	}
	now, tokenHash := s.Store.Now(), account.HashToken(r.Token)
	owner, err := s.Store.AccountByResetToken(ctx, tokenHash, now) // this is first, so that a password is hashed only for a valid token
	var reset *Reset
	if err == nil {
		reset, err = s.resetPassword(ctx, client, owner, tokenHash, r)
	}
	if errors.Is(err, account.ErrNotFound) {
		return nil, ErrResetToken
	}
	return reset, err
}

func (s *Persons) resetPassword(ctx context.Context, client Client, owner *account.Account, tokenHash [32]byte, r ResetRequest) (*Reset, error) {
	hash, err := s.hash(ctx, r.NewPassword)
	if err != nil {
		return nil, err
	}
	entry := s.entry(client, owner.ID, account.PasswordReset, "by a link; all sessions ended")
	entry.Notice = s.notice(account.NoticeToPerson)
	id, err := s.Store.ResetPassword(ctx, tokenHash, hash, r.UnlinkAccounts, entry)
	if err != nil {
		return nil, err
	}
	s.noticesQueued()
	device := parseDevice(client.Device).signIn(&account.Account{ID: id, PasswordHash: hash})
	s.limits.signInPerDevice.reset(ctx, passwordOf(owner.Email, device)) // it may be empty from tries of the forgotten password
	return &Reset{Fresh: id != owner.ID, Device: device.String()}, nil
}
