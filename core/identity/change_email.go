package identity

import (
	"context"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// ChangeEmail mails the links that change the address of a person's account: first to the current address, if that is verified,
// and after its confirmation to the new one. It needs a fresh session or the client's password, and does not look up whether an account
// has the new address. It returns ErrVerificationOff, an *account.InvalidError, or the errors of a confirmation.
func (s *Persons) ChangeEmail(ctx context.Context, client Client, p *Principal, newEmail, callback string) error {
	if s.MailQueued == nil {
		return ErrVerificationOff
	}
	owner := p.Person
	newEmail, err := account.ParseNewEmail("newEmail", newEmail)
	if err != nil {
		return err
	}
	if newEmail == owner.Email {
		return &account.InvalidError{Field: "newEmail", Message: "is the address that the account has"}
	}
	if callback, err = s.Callback("callbackURL", callback); err != nil {
		return err
	}
	m := mail.Draft{Kind: mail.KindChangeEmail, Recipient: newEmail, AccountID: owner.ID, Callback: callback}
	recipients := []string{newEmail}
	if owner.EmailVerified() && owner.HasEmail() {
		m.Kind, m.Recipient, m.NewEmail = mail.KindConfirmEmailChange, owner.Email, newEmail
		recipients = append(recipients, owner.Email) // both get a mail in the end
	}
	c := s.Change(client, p)
	if err := c.Confirm(ctx, changesEmail); err != nil {
		return err
	}
	if err := s.limitMail(ctx, client, recipients...); err != nil {
		return err
	}
	entry := s.entry(client, owner.ID, account.EmailChangeRequested, "to "+newEmail)
	return c.write(ctx, owner.ID, Person, func(ctx context.Context, tx Tx) error {
		if _, err := c.Allow(changesEmail); err != nil {
			return err
		}
		return tx.QueueMailWithEntry(ctx, c.rights, m, entry)
	})
}
