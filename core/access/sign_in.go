package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"intents.internal/core/account"
)

// SignIn checks a password and starts a session. An address without an account and a wrong password get the same
// ErrCredentials in the same time. It returns an *account.InvalidError for a text that is no address, ErrBusy or a
// *LimitedError; the limit for one account is spent before the check and given back by a right password.
func (s *Service) SignIn(ctx context.Context, v Visitor, email, password string) (*SignedIn, error) {
	email, err := account.ParseEmail(email)
	if err != nil {
		return nil, err
	}
	if err := s.limiter.spend(ctx, s.rules.Load().signInPerIP, v.network()); err != nil {
		return nil, err
	}
	if err := s.limiter.spend(ctx, s.rules.Load().signInPerAccount, digest(email)); err != nil {
		return nil, err
	}
	owner, err := s.Store.AccountByEmail(ctx, email)
	if errors.Is(err, account.ErrNotFound) {
		owner = &account.Account{}
	} else if err != nil {
		return nil, err
	}
	matches, err := s.matches(ctx, password, owner.PasswordHash)
	if err != nil {
		return nil, err
	}
	if !matches {
		return nil, ErrCredentials
	}
	s.limiter.reset(ctx, s.rules.Load().signInPerAccount, digest(email))
	return s.startSession(ctx, v, owner, "with a password")
}

// digest keeps addresses out of Redis. It is the same whether or not an account has the address.
func digest(email string) string {
	sum := sha256.Sum256([]byte(email))
	return hex.EncodeToString(sum[:16])
}

// startSession signs a visitor in; how is for the audit log. A session the browser held before ends, so that one planted
// by somebody else is of no use.
func (s *Service) startSession(ctx context.Context, v Visitor, owner *account.Account, how string) (*SignedIn, error) {
	if err := s.SignOut(ctx, v.Token); err != nil {
		return nil, err
	}
	now := time.Now()
	session, token, err := account.NewSession(owner.ID, v.IP, v.UserAgent, now)
	if err != nil {
		return nil, err
	}
	entry, err := account.NewAuditEntry(owner.ID, v.actor(), account.SignedIn, now)
	if err != nil {
		return nil, err
	}
	entry.Detail = how
	err = s.Store.InsertSession(ctx, session, owner, entry)
	if errors.Is(err, account.ErrNotFound) { // it has ended, or got another password, since it was found
		return nil, ErrCredentials
	}
	if err != nil {
		return nil, err
	}
	return &SignedIn{Account: owner, Session: session, Token: token}, nil
}
