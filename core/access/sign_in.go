package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"intents.internal/core/account"
)

// SignIn checks a password and starts a session. An address without an account and a wrong password get the same
// ErrCredentials in the same time. It returns an *account.InvalidError for a text that is no address, ErrBusy or a
// *LimitedError; the limits on one account are spent before the check and given back by a right password.
func (s *Service) SignIn(ctx context.Context, v Visitor, email, password string) (*SignedIn, error) {
	email, err := account.ParseEmail(email)
	if err != nil {
		return nil, err
	}
	known, err := s.knownDevice(ctx, v, email)
	if err != nil {
		return nil, err
	}
	forgive, err := s.limitPassword(ctx, v, email, known)
	if err != nil {
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
	forgive()
	return s.startPasswordSession(ctx, v, owner)
}

// limitPassword counts a try of an account's password and returns what a right one gives back. Tries from devices that have
// signed in to the account are counted apart from all others, so that nobody else can use them up.
func (s *Service) limitPassword(ctx context.Context, v Visitor, email string, known device) (forgive func(), err error) {
	tried := digest(email)
	if known.id != "" {
		subject := tried + ":" + known.id
		return func() { s.limits.signInPerDevice.reset(ctx, subject) }, s.limitDevice(ctx, v, subject)
	}
	if err := s.limits.signInPerIP.take(ctx, v.network()); err != nil {
		return nil, err
	}
	// The address's own tries end before those of all addresses, so that one address cannot use these up.
	fromHere := tried + ":" + v.network()
	if err := s.limits.signInPerAccountAndIP.take(ctx, fromHere); err != nil {
		return nil, err
	}
	if err := s.limits.signInPerAccount.take(ctx, tried); err != nil {
		return nil, err
	}
	return func() {
		s.limits.signInPerAccountAndIP.reset(ctx, fromHere)
		s.limits.signInPerAccount.refund(ctx, tried) // no more than it took: whoever guesses gets nothing back
	}, nil
}

// limitDevice counts a password try of a device or session that has signed in, and bounds those of one address together, so
// that many devices do not add up to any number of passwords to check.
func (s *Service) limitDevice(ctx context.Context, v Visitor, subject string) error {
	if err := s.limits.signInPerDevice.take(ctx, subject); err != nil {
		return err
	}
	return s.limits.signInOfDevices.take(ctx, v.network())
}

// digest keeps addresses out of Redis. It is the same whether or not an account has the address.
func digest(email string) string {
	sum := sha256.Sum256([]byte(email))
	return hex.EncodeToString(sum[:16])
}

// startPasswordSession signs in a visitor who has given the owner's password, or just set it.
func (s *Service) startPasswordSession(ctx context.Context, v Visitor, owner *account.Account) (*SignedIn, error) {
	in, err := s.startSession(ctx, v, owner, "with a password")
	if err != nil {
		return nil, err
	}
	in.Device = parseDevice(v.Device).signIn(owner).String()
	return in, nil
}

// startSession signs a visitor in; how is for the audit log. A session the browser held before ends, so that one planted
// by somebody else is of no use.
func (s *Service) startSession(ctx context.Context, v Visitor, owner *account.Account, how string) (*SignedIn, error) {
	if err := s.SignOut(ctx, v.Token); err != nil {
		return nil, err
	}
	now := s.Store.Now()
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
