package access

import (
	"context"

	"intents.internal/core/account"
)

// SignUp makes an account and signs it in. It returns ErrSignUpClosed, an *account.InvalidError, account.ErrEmailTaken,
// ErrBusy or a *LimitedError.
func (s *Service) SignUp(ctx context.Context, v Visitor, name, email, password string) (*SignedIn, error) {
	if !s.SignUpOpen {
		return nil, ErrSignUpClosed
	}
	now := s.Store.Now()
	owner, err := account.New(name, email, "", now)
	if err != nil {
		return nil, err
	}
	// The response reveals whether the address is taken, so every try counts.
	if err := s.limits.signUpPerIP.take(ctx, v.network()); err != nil {
		return nil, err
	}
	if owner.PasswordHash, err = s.hash(ctx, password); err != nil {
		return nil, err
	}
	entry, err := account.NewAuditEntry(owner.ID, v.Actor(), account.SignedUp, now)
	if err != nil {
		return nil, err
	}
	if err := s.Store.InsertAccount(ctx, owner, entry); err != nil {
		return nil, err
	}
	return s.startPasswordSession(ctx, v, owner)
}
