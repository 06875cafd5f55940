package identity

import (
	"context"

	"intents.internal/core/identity/account"
)

// ChangePassword gives the account of a person another password, ends all of its sessions and starts a new one in the client's
// browser. It returns an *account.InvalidError for a new password that breaks the rule, ErrNoPassword for an account that has none, and
// ErrPassword for a wrong current one. It is limited like a sign-in, so it may return ErrBusy and a *LimitedError.
func (s *Persons) ChangePassword(ctx context.Context, client Client, p *Principal, current, next string) (*SignedIn, error) {
	if err := account.CheckPassword("newPassword", next); err != nil {
		return nil, err
	}
	owner := p.Person
	if owner.PasswordHash == "" {
		return nil, ErrNoPassword
	}
	c := s.Change(client, p)
	if err := c.checkPassword(ctx, current); err != nil {
		return nil, err
	}
	hash, err := s.hash(ctx, next)
	if err != nil {
		return nil, err
	}
	now := s.Store.Now()
	replacement, token, err := account.NewSession(owner.ID, client.IP, client.UserAgent, now)
	if err != nil {
		return nil, err
	}
	if p.Session.EndsWithBrowser() {
		replacement.EndWithBrowser()
	}
	entry := s.entry(client, owner.ID, account.PasswordChanged, "all other sessions ended")
	entry.Notice = s.notice(account.NoticeToPerson)
	err = c.write(ctx, owner.ID, Person, func(ctx context.Context, tx Tx) error {
		return tx.ChangePassword(ctx, c.rights, owner, hash, replacement, entry)
	})
	if err != nil {
		return nil, err
	}
	changed := *owner
	changed.PasswordHash, changed.UpdatedAt = hash, now
	device := parseDevice(client.Device).signIn(&changed).String()
	return &SignedIn{Account: &changed, Session: replacement, Token: token, Device: device}, nil
}
