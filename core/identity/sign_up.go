package identity

import (
	"context"
	"time"

	"intents.internal/core/identity/account"
)

// SignUp creates an account and signs it in. If mail is configured it signs nobody in: it mails a link that verifies the address
// and gives the account this name and password, or the notice that the address has an account, and returns the same in both cases.
// callback is the path to which the link finally leads. It returns ErrSignUpClosed, an *account.InvalidError, ErrBusy, a *LimitedError, or, if no mail is configured,
// account.ErrEmailTaken.
func (s *Persons) SignUp(ctx context.Context, client Client, name, email, password, callback string) (*SignedIn, error) {
	if !s.SignUpOpen {
		return nil, ErrSignUpClosed
	}
	began := time.Now()
	owner, err := account.New(name, email, "", s.Store.Now())
	if err != nil {
		return nil, err
	}
	callback, err = s.Callback("callbackURL", callback)
	if err != nil {
		return nil, err
	}
	// Without mail the response reveals whether the address is taken, so every attempt counts.
	if err := s.limits.signUpPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	if owner.PasswordHash, err = s.hash(ctx, password); err != nil {
		return nil, err
	}
	if s.MailQueued != nil {
		owner.VerificationRequired = true
		signedUp, err := s.signUpByMail(ctx, client, owner, callback)
		waitForStep(ctx, began)
		return signedUp, err
	}
	if err := s.Store.InsertAccount(ctx, owner, s.entry(client, owner.ID, account.SignedUp, "")); err != nil {
		return nil, err
	}
	return s.startPasswordSession(ctx, client, owner)
}

// answerStep is far above the difference between storing an account and finding that its address is taken, 0.1 ms.
const answerStep = 50 * time.Millisecond

// waitForStep waits until a whole number of steps has passed since a time, so that the duration of the response reveals nothing.
func waitForStep(ctx context.Context, began time.Time) {
	select {
	case <-time.After(answerStep - time.Since(began)%answerStep):
	case <-ctx.Done():
	}
}

// signUpByMail stores a sign-up and mails to its address.
func (s *Persons) signUpByMail(ctx context.Context, client Client, owner *account.Account, callback string) (*SignedIn, error) {
	if err := s.limitMail(ctx, client, owner.Email); err != nil {
		return nil, err
	}
	if err := s.Store.InsertSignUp(ctx, owner, callback); err != nil {
		return nil, err
	}
	s.MailQueued()
	return &SignedIn{Account: owner}, nil
}
