package identity

import (
	"context"
	"errors"
	"fmt"

	"intents.internal/core/identity/account"
)

// SharedRequest asks for a shared account.
type SharedRequest struct {
	Name string
	// Stay leaves the session on the account that it acts on.
	Stay bool
	// FormToken is the hash of a form's one-time token, zero for none.
	FormToken [32]byte
}

// CreateShared creates an account without a sign-in, whose owner is the person of a session. It returns an *account.InvalidError,
// account.ErrTooManyShared, account.ErrFormUsed, or a *LimitedError.
func (s *Members) CreateShared(ctx context.Context, client Client, p *Principal, r SharedRequest) (*account.Account, error) {
	now := s.Store.Now()
	shared, err := account.NewSharedAccount(r.Name, now)
	if err != nil {
		return nil, err
	}
	if err := s.limits.signUpPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	entry := s.entry(client, shared.ID, account.AccountShared, "")
	c := s.Change(client, p)
	return shared, c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) error {
		if err := tx.UseFormToken(ctx, r.FormToken, now); err != nil {
			return err
		}
		if err := tx.InsertSharedAccount(ctx, c.rights, shared, p.Person.ID); err != nil {
			return err
		}
		if !r.Stay {
			if err := tx.SetActing(ctx, c.rights, shared.ID); err != nil {
				return err
			}
		}
		return tx.Audit(ctx, entry)
	})
}

// RenameShared renames a shared account. It returns account.ErrNotShared, an *account.InvalidError, account.ErrNotMember, and
// ErrRole for a person who is no longer an owner.
func (s *Members) RenameShared(ctx context.Context, client Client, p *Principal, name string) (*account.Account, error) {
	renamed, now := *p.Account, s.Store.Now()
	if err := renamed.Rename(name); err != nil {
		return nil, err
	}
	entry := s.entry(client, renamed.ID, account.AccountRenamed, fmt.Sprintf("%s, was %s", renamed.Name, p.Account.Name))
	c := s.Change(client, p)
	return &renamed, c.write(ctx, renamed.ID, Manage, func(ctx context.Context, tx Tx) error {
		if err := tx.RenameAccount(ctx, c.rights, &renamed, now); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}

// DeleteShared permanently ends a shared account. If the client has a password it must be the person's, otherwise ErrPassword;
// without one the session must be of the last ten minutes, otherwise ErrPasswordNeeded or ErrSignInNeeded. It returns account.ErrNotShared for an account
// with a sign-in.
func (s *Members) DeleteShared(ctx context.Context, client Client, p *Principal) error {
	if !p.Account.Shared {
		return account.ErrNotShared
	}
	c := s.Change(client, p)
	if client.Password != "" && p.Person.PasswordHash != "" {
		if err := c.checkPassword(ctx, client.Password); err != nil {
			return err
		}
	}
	err := c.write(ctx, p.Account.ID, Manage, func(ctx context.Context, tx Tx) error {
		notice, err := c.Allow(endsAccount)
		if err != nil {
			return err
		}
		return tx.DeleteSharedAccount(ctx, c.rights, p.Account.ID, notice, client.Actor(), s.Store.Now())
	})
	if errors.Is(err, account.ErrNotFound) { // it has ended since it was found
		return account.ErrNotMember
	}
	return err
}
