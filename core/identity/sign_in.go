package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// SignIn checks a password and starts a session. An address without an account and a wrong password get the same
// ErrCredentials in the same time, and so does an account whose address must be verified first. It returns an *account.InvalidError for a
// text that is no address, ErrBusy or a *LimitedError; a try counts before the check, and a right password is refunded.
func (s *Persons) SignIn(ctx context.Context, client Client, email, password string) (*SignedIn, error) {
	began := time.Now()
	email, err := account.ParseEmail(email)
	if err != nil {
		return nil, err
	}
	known, err := s.knownDevice(ctx, client, email)
	if err != nil {
		return nil, err
	}
	refund, err := s.limitPassword(ctx, client, email, known)
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
	if !matches || s.mustVerify(owner) {
		return nil, s.failSignIn(ctx, client, email, began)
	}
	refund()
	return s.startPasswordSession(ctx, client, owner)
}

// failSignIn records a failed sign-in for the account of an address, if there is one, and returns ErrCredentials after a whole number of
// steps, which hides the difference.
func (s *Persons) failSignIn(ctx context.Context, client Client, email string, began time.Time) error {
	if err := s.Store.AuditAttempt(ctx, email, account.NewHourlyEntry(uuid.Nil, email, client.Actor(), account.SignInFailed, s.Store.Now())); err != nil {
		return err
	}
	waitForStep(ctx, began)
	return ErrCredentials
}

// limitPassword counts a password attempt and returns the refund for a correct one. Devices that have signed in to the account
// have separate limits, which nobody else can use up.
func (s *Persons) limitPassword(ctx context.Context, client Client, email string, known device) (refund func(), err error) {
	emailHash := digest(email)
	if known.id != "" {
		subject := passwordOf(email, known)
		return func() { s.limits.signInPerDevice.reset(ctx, subject) }, s.limitDevice(ctx, client, subject)
	}
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	// The limit of the address is below the account's, so that one address cannot use that up.
	accountAndIP := emailHash + ":" + client.network()
	if err := s.limits.signInPerAccountAndIP.take(ctx, accountAndIP); err != nil {
		return nil, err
	}
	if err := s.limits.signInPerAccount.take(ctx, emailHash); err != nil {
		return nil, err
	}
	return func() {
		s.limits.signInPerAccountAndIP.reset(ctx, accountAndIP)
		s.limits.signInPerAccount.refund(ctx, emailHash) // this refunds only the token of this attempt, so that guesses stay counted
	}, nil
}

// passwordOf is the bucket of a device's tries for the password of an address.
func passwordOf(email string, d device) string { return digest(email) + ":" + d.id }

// limitDevice counts a password try of a known device or a session, and of its address, since many devices at one address would
// otherwise have any number of tries.
func (s *base) limitDevice(ctx context.Context, client Client, subject string) error {
	if err := s.limits.signInPerDevice.take(ctx, subject); err != nil {
		return err
	}
	return s.limits.signInOfDevices.take(ctx, client.network())
}

// digest replaces the e-mail address in the names of buckets, so that Redis stores no addresses.
func digest(email string) string {
	sum := sha256.Sum256([]byte(email))
	return hex.EncodeToString(sum[:16])
}

// startPasswordSession signs in a client after a password check or sign-up.
func (s *Persons) startPasswordSession(ctx context.Context, client Client, owner *account.Account) (*SignedIn, error) {
	in, err := s.startSession(ctx, client, owner, "with a password", s.Store.InsertSession)
	if err != nil {
		return nil, err
	}
	in.Device = parseDevice(client.Device).signIn(owner).String()
	return in, nil
}

// startSession signs a client in; how is for the audit log, and insert stores the session. It ends the browser's previous session,
// which prevents session fixation.
func (s *Persons) startSession(
	ctx context.Context, client Client, owner *account.Account, how string,
	insert func(context.Context, *account.Session, *account.Account, account.AuditEntry) error,
) (*SignedIn, error) {
	if err := s.sessions.SignOut(ctx, client); err != nil {
		return nil, err
	}
	session, token, err := account.NewSession(owner.ID, client.IP, client.UserAgent, s.Store.Now())
	if err != nil {
		return nil, err
	}
	if client.EndsWithBrowser {
		session.EndWithBrowser()
	}
	err = insert(ctx, session, owner, s.entry(client, owner.ID, account.SignedIn, how))
	if errors.Is(err, account.ErrNotFound) { // it has ended, got another password or lost the identity, since it was found
		return nil, ErrCredentials
	}
	if err != nil {
		return nil, err
	}
	s.sessions.remember(token, owner.ID)
	return &SignedIn{Account: owner, Session: session, Token: token}, nil
}
