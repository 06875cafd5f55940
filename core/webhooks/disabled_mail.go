package webhooks

import (
	"context"
	"errors"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// ComposeDisabled composes the mail to an owner that a webhook was disabled, or nothing if the webhook was enabled or deleted
// meanwhile or the recipient is no longer an owner.
func (s *Service) ComposeDisabled(ctx context.Context, m *mail.Queued) (*mail.Message, error) {
	disabled, err := s.store.Webhook(ctx, feed.Owner{AccountID: m.AccountID}, m.WebhookID)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if disabled.Enabled || disabled.DisabledReason == DisabledByOwner {
		return nil, nil
	}
	of, err := s.identities.Store.AccountByID(ctx, m.AccountID)
	if err != nil {
		return nil, err
	}
	roster, err := s.identities.Store.Members(ctx, m.AccountID)
	if err != nil {
		return nil, err
	}
	for _, member := range roster {
		if member.Role == account.RoleOwner && member.Email == m.Recipient {
			link := s.identities.MailLink("/console/webhooks/" + disabled.ID.String())
			return mail.Write(m.Recipient, mail.WebhookDisabled, mail.WebhookLink{Link: link, Account: of.Name, Gone: disabled.DisabledReason == DisabledGone})
		}
	}
	return nil, nil
}
