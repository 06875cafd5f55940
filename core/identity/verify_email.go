package identity

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// LinkPath is the page of a link that proves an address, below the public URL. The token is in its query.
const LinkPath = "/console/verify-email"

// SendVerificationEmail mails a link that verifies an address, if an account has it and has not verified it. For a client
// without a session it does the same for every address. It returns ErrVerificationOff, ErrEmailMismatch or ErrEmailVerified about
// the signed-in account, an *account.InvalidError for a malformed address or another site, or a *LimitedError.
func (s *Persons) SendVerificationEmail(ctx context.Context, client Client, email, callback string) error {
	if s.MailQueued == nil {
		return ErrVerificationOff
	}
	email, err := account.ParseEmail(email)
	if err != nil {
		return err
	}
	if callback, err = s.Callback("callbackURL", callback); err != nil {
		return err
	}
	_, owner, err := s.sessions.Get(ctx, client.Token)
	switch {
	case errors.Is(err, ErrSignedOut):
	case err != nil:
		return err
	case owner.Email != email:
		return ErrEmailMismatch
	case owner.EmailVerified():
		return ErrEmailVerified
	}
	return s.queueMail(ctx, client, mail.Draft{Kind: mail.KindVerifyEmail, Recipient: email, Callback: callback})
}

// mustVerify reports whether a correct password does not sign in. The response is that to a wrong password, so that nobody learns
// by signing up and in whether an address had an account.
func (s *base) mustVerify(owner *account.Account) bool {
	return s.MailQueued != nil && owner.VerificationRequired && !owner.EmailVerified()
}

// Link returns the effect of a token's link, and its account. It returns ErrLink, or a *LimitedError.
func (s *Persons) Link(ctx context.Context, client Client, token string) (*Link, error) {
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	l, err := s.Store.LinkByToken(ctx, account.HashToken(token), s.Store.Now())
	if errors.Is(err, account.ErrNotFound) {
		return nil, ErrLink
	}
	return l, err
}

// VerifyEmail uses a link without further proof, like better-auth: it verifies the address of an account and signs nobody in. A
// link that changes an address works only if the client is signed in to its account. It returns ErrLink, ErrLinkSignedOut,
// account.ErrEmailTaken or a *LimitedError.
func (s *Persons) VerifyEmail(ctx context.Context, client Client, token, callback string) (changed *account.Account, err error) {
	l, err := s.Link(ctx, client, token)
	if err != nil {
		return nil, err
	}
	if callback, err = s.Callback("callbackURL", callback); err != nil {
		return nil, err
	}
	if l.Purpose != account.VerifyEmail && !s.isSignedIn(ctx, client, l) {
		return nil, ErrLinkSignedOut
	}
	id, err := s.useLink(ctx, client, token, l, callback)
	if err != nil || l.Purpose != account.ChangeEmail {
		return nil, err
	}
	return s.Store.AccountByID(ctx, id)
}

// FollowLink uses a link in a browser. The client must be signed in to the link's account, or give its password or that of its
// sign-up, because the owner of an address must not confirm it for somebody else's account. A password also signs in; without it
// signedIn is nil. It returns ErrLink, ErrLinkSignedOut for an account that has no password, ErrPassword, account.ErrEmailTaken, ErrBusy or a *LimitedError.
func (s *Persons) FollowLink(ctx context.Context, client Client, token, password, callback string) (l *Link, signedIn *SignedIn, err error) {
	if l, err = s.Link(ctx, client, token); err != nil {
		return nil, nil, err
	}
	if callback, err = s.Callback("callbackURL", callback); err != nil {
		return nil, nil, err
	}
	if s.isSignedIn(ctx, client, l) {
		_, err := s.useLink(ctx, client, token, l, callback)
		return l, nil, err
	}
	owner, err := s.Store.AccountByID(ctx, l.AccountID)
	if err != nil {
		return nil, nil, err
	}
	// The link of a sign-up has the password of that sign-up.
	hash := cmp.Or(l.SignUp.PasswordHash, owner.PasswordHash)
	if hash == "" {
		return nil, nil, ErrLinkSignedOut
	}
	if err := s.limitDevice(ctx, client, "link:"+digest(token)); err != nil {
		return nil, nil, err
	}
	matches, err := s.matches(ctx, password, hash)
	if err != nil {
		return nil, nil, err
	}
	if !matches {
		return nil, nil, ErrPassword
	}
	id, err := s.useLink(ctx, client, token, l, callback)
	if err != nil {
		return nil, nil, err
	}
	if owner, err = s.Store.AccountByID(ctx, id); err != nil {
		return nil, nil, err
	}
	signedIn, err = s.startPasswordSession(ctx, client, owner)
	return l, signedIn, err
}

// isSignedIn reports whether the client is signed in to the account of a link.
func (s *Persons) isSignedIn(ctx context.Context, client Client, l *Link) bool {
	session, _, err := s.sessions.Get(ctx, client.Token)
	return err == nil && session.AccountID == l.AccountID
}

func (s *Persons) useLink(ctx context.Context, client Client, token string, l *Link, callback string) (uuid.UUID, error) {
	next := mail.Draft{Kind: mail.KindChangeEmail, Recipient: l.NewEmail, AccountID: l.AccountID, Callback: callback}
	used := *l
	used.Notice = s.notice(account.NoticeToPerson)
	id, err := s.Store.UseLink(ctx, account.HashToken(token), &used, next, client.Actor(), s.Store.Now())
	if errors.Is(err, account.ErrNotFound) {
		return id, ErrLink
	}
	if err == nil {
		s.noticesQueued()
	}
	return id, err
}
