package identity

import (
	"context"
	"errors"
	"strings"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// queueMail limits and queues a mail. It looks up nothing about its recipient.
func (s *base) queueMail(ctx context.Context, client Client, d mail.Draft) error {
	if err := s.limitMail(ctx, client, d.Recipient); err != nil {
		return err
	}
	if err := s.Mail.Insert(ctx, d); err != nil {
		return err
	}
	s.MailQueued()
	return nil
}

// limitMail counts a request for mail. Both buckets are the client's network's, so that nobody uses up those of others.
func (s *base) limitMail(ctx context.Context, client Client, recipients ...string) error {
	if err := s.limits.mailsPerIP.take(ctx, client.network()); err != nil {
		return err
	}
	for _, recipient := range recipients {
		if err := s.limits.mailsPerAddress.take(ctx, digest(recipient)+":"+client.network()); err != nil {
			return err
		}
	}
	return nil
}

// Composers compose the mails of this package.
func (s *Service) Composers() mail.Composers {
	return mail.Composers{
		mail.KindResetPassword:      s.LimitMails(s.Persons.composeResetPassword),
		mail.KindSignUp:             s.LimitMails(s.Persons.composeSignUp),
		mail.KindVerifyEmail:        s.LimitMails(s.Persons.composeVerifyEmail),
		mail.KindConfirmEmailChange: s.LimitMails(s.Persons.composeConfirmEmailChange),
		mail.KindChangeEmail:        s.LimitMails(s.Persons.composeChangeEmail),
		mail.KindInvitation:         s.LimitMails(s.Members.composeInvitation),
		mail.KindSecurityNotice:     composed(s.composeSecurityNotice),
	}
}

// LimitMails composes nothing for an address that has got as many mails of the kind within the hour as it may from all networks
// together: the links in those work.
func (s *base) LimitMails(compose mail.Compose) mail.Compose {
	return func(ctx context.Context, queued *mail.Queued) (*mail.Message, error) {
		if queued.Attempts <= 1 {
			err := s.limits.mailsOfKind.take(ctx, string(queued.Kind)+":"+digest(queued.Recipient))
			if _, limited := errors.AsType[*LimitedError](err); limited {
				return nil, nil
			} else if err != nil {
				return nil, err
			}
		}
		return composed(compose)(ctx, queued)
	}
}

// composed composes nothing about what has ended.
func composed(compose mail.Compose) mail.Compose {
	return func(ctx context.Context, queued *mail.Queued) (*mail.Message, error) {
		message, err := compose(ctx, queued)
		if errors.Is(err, account.ErrNotFound) {
			return nil, nil
		}
		return message, err
	}
}

func (s *Persons) composeResetPassword(ctx context.Context, m *mail.Queued) (*mail.Message, error) {
	owner, err := s.Store.AccountByEmail(ctx, m.Recipient)
	if err != nil || !owner.HasEmail() {
		return nil, err
	}
	token := account.NewLinkToken()
	if err := s.Store.InsertResetToken(ctx, owner, account.HashToken(token), s.Store.Now().Add(account.LinkLifetime), nil); err != nil {
		return nil, err
	}
	return mail.Write(owner.Email, mail.ResetPassword, s.mailLink(ResetURL(s.PublicURL, token)))
}

// composeSignUp writes the mail to an address with a sign-up: the link, also if an earlier sign-up is pending, or that another
// account has the address.
func (s *Persons) composeSignUp(ctx context.Context, m *mail.Queued) (*mail.Message, error) {
	owner, err := s.Store.AccountByEmail(ctx, m.Recipient)
	switch {
	case err != nil:
		return nil, err
	case owner.ID != m.AccountID && !s.mustVerify(owner):
		return s.writeAddressTaken(owner.Email)
	case owner.EmailVerified():
		return nil, nil
	}
	l := Link{Purpose: account.VerifyEmail, AccountID: owner.ID, Email: owner.Email, SignUp: SignUp{Name: m.Name, PasswordHash: m.PasswordHash}}
	to, err := s.newLink(ctx, l, m.Callback)
	if err != nil {
		return nil, err
	}
	return mail.Write(owner.Email, mail.SignUp, mail.Addresses{Link: s.mailLink(to), Email: owner.Email})
}

func (s *Persons) composeVerifyEmail(ctx context.Context, m *mail.Queued) (*mail.Message, error) {
	owner, err := s.Store.AccountByEmail(ctx, m.Recipient)
	if err != nil || !owner.HasEmail() || owner.EmailVerified() {
		return nil, err
	}
	to, err := s.newLink(ctx, Link{Purpose: account.VerifyEmail, AccountID: owner.ID, Email: owner.Email}, m.Callback)
	if err != nil {
		return nil, err
	}
	return mail.Write(owner.Email, mail.VerifyEmail, mail.Addresses{Link: s.mailLink(to), Email: owner.Email})
}

func (s *Persons) composeConfirmEmailChange(ctx context.Context, m *mail.Queued) (*mail.Message, error) {
	owner, err := s.Store.AccountByID(ctx, m.AccountID)
	if err != nil || owner.Email != m.Recipient {
		return nil, err
	}
	l := Link{Purpose: account.ConfirmEmailChange, AccountID: owner.ID, Email: owner.Email, NewEmail: m.NewEmail}
	to, err := s.newLink(ctx, l, m.Callback)
	if err != nil {
		return nil, err
	}
	return mail.Write(owner.Email, mail.ConfirmEmailChange, mail.Addresses{Link: s.mailLink(to), Email: owner.Email, NewEmail: m.NewEmail})
}

// composeChangeEmail writes the mail to the new address of an account: the link, or that another account keeps the address.
func (s *Persons) composeChangeEmail(ctx context.Context, m *mail.Queued) (*mail.Message, error) {
	owner, err := s.Store.AccountByID(ctx, m.AccountID)
	if err != nil || owner.Email == m.Recipient {
		return nil, err
	}
	held, err := s.Store.EmailHeld(ctx, m.Recipient)
	if err != nil {
		return nil, err
	}
	if held {
		return s.writeAddressTaken(m.Recipient)
	}
	l := Link{Purpose: account.ChangeEmail, AccountID: owner.ID, Email: owner.Email, NewEmail: m.Recipient}
	to, err := s.newLink(ctx, l, m.Callback)
	if err != nil {
		return nil, err
	}
	return mail.Write(m.Recipient, mail.ChangeEmail, mail.Addresses{Link: s.mailLink(to), Email: m.Recipient})
}

func (s *Persons) writeAddressTaken(email string) (*mail.Message, error) {
	return mail.Write(email, mail.AddressTaken, mail.Addresses{Link: s.mailLink(s.PublicURL + "/console/sign-in"), Email: email})
}

// newLink stores a link and returns the URL of its page in the console. GET has no effect there, because programs that scan mail
// follow links.
func (s *Persons) newLink(ctx context.Context, l Link, callback string) (string, error) {
	token := account.NewLinkToken()
	if err := s.Store.InsertLink(ctx, account.HashToken(token), l, s.Store.Now().Add(account.LinkLifetime)); err != nil {
		return "", err
	}
	return WithQuery(WithQuery(s.PublicURL+LinkPath, "token", token), "callbackURL", callback), nil
}

// MailLink is what a message says about its link to a page of the console.
func (s *base) MailLink(page string) mail.Link { return s.mailLink(s.PublicURL + page) }

// mailLink is what a message says about its link.
func (s *base) mailLink(to string) mail.Link {
	_, host, _ := strings.Cut(s.PublicURL, "://")
	return mail.Link{Service: host, URL: to, ValidFor: account.LinkLifetime}
}
