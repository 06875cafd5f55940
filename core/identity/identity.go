package identity

import (
	"context"
	"errors"

	"intents.internal/core/identity/account"
)

// ErrAccountDisabled is returned only to the proven owner of the account.
var ErrAccountDisabled = errors.New("the account is disabled")

// signInIdentity signs in the account of a proven identity. If there is none it inserts the account that create returns, under the
// conditions of SignUp; how is for the audit log, and confirms says by what the new session is confirmed.
func (s *Persons) signInIdentity(
	ctx context.Context, client Client, identity account.Identity, how string, confirms func(*account.Session), create func() (*account.Account, error),
) (*SignedIn, error) {
	owner, err := s.Store.AccountByIdentity(ctx, identity)
	if errors.Is(err, account.ErrNotFound) {
		owner, err = s.signUpIdentity(ctx, client, identity, create)
	}
	if err != nil {
		return nil, err
	}
	insert := func(ctx context.Context, session *account.Session, owner *account.Account, entry account.AuditEntry) error {
		confirms(session)
		return s.Store.InsertIdentitySession(ctx, session, owner, identity, entry)
	}
	signedIn, err := s.startSession(ctx, client, owner, how, insert)
	if errors.Is(err, ErrCredentials) {
		return nil, ErrAccountDisabled
	}
	return signedIn, err
}

func (s *Persons) signUpIdentity(
	ctx context.Context, client Client, identity account.Identity, create func() (*account.Account, error),
) (*account.Account, error) {
	if !s.SignUpOpen {
		return nil, ErrSignUpClosed
	}
	if err := s.limits.signUpPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	owner, err := create()
	if err != nil {
		return nil, err
	}
	taken := s.Store.InsertAccountWithIdentity(ctx, owner, identity, s.entry(client, owner.ID, account.SignedUp, ""))
	if !errors.Is(taken, account.ErrIdentityTaken) && !errors.Is(taken, account.ErrEmailTaken) {
		return owner, taken
	}
	// A concurrent sign-in of the same identity may have created the account, which then has the e-mail address too.
	owner, err = s.Store.AccountByIdentity(ctx, identity)
	if !errors.Is(err, account.ErrNotFound) {
		return owner, err
	}
	if errors.Is(taken, account.ErrIdentityTaken) {
		return nil, ErrAccountDisabled
	}
	return nil, taken
}
