package identity

import (
	"context"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/webhooks"
)

// CreateWebhook stores a new endpoint of the account. A live one needs a fresh session or the client's password. formToken is the
// SHA-256 of the form's one-time token. It returns what webhooks.Store.InsertWebhook returns, and the errors of a confirmation.
func (s *Service) CreateWebhook(ctx context.Context, client Client, p *Principal, e *webhooks.Endpoint, formToken [32]byte) error {
	c, entry := s.change(client, p), s.entry(client, p.Account.ID, account.WebhookCreated, "")
	given := webhookEffect(nil, e)
	if err := c.confirm(ctx, given); err != nil {
		return err
	}
	entry.Notice = s.notice(tells[given])
	return c.run(ctx, func() error {
		return s.Webhooks.InsertWebhook(ctx, c.deciding(p.Account.ID, Develop, given), e, entry, formToken)
	})
}

// ChangeWebhook applies a change of package webhooks to one of the account's endpoints, and writes what it returns to the audit log as the
// action. A live one that gives more than before needs a fresh session or the client's password. It returns
// webhooks.ErrNotFound, the error of apply, and the errors of a confirmation.
func (s *Service) ChangeWebhook(
	ctx context.Context, client Client, p *Principal, id uuid.UUID, action account.Action, apply func(*webhooks.Endpoint) (detail string, err error),
) (changed *webhooks.Endpoint, err error) {
	c, entry := s.change(client, p), s.entry(client, p.Account.ID, action, "")
	err = c.run(ctx, func() (err error) {
		changed, err = s.Webhooks.ChangeWebhook(ctx, c.grant(p.Account.ID, Develop), ownerOf(p), id, &entry, func(e *webhooks.Endpoint) (string, error) {
			before := *e
			detail, err := apply(e)
			if err != nil {
				return "", err
			}
			entry.Notice, err = c.allow(webhookEffect(&before, e))
			return detail, err
		})
		return err
	})
	return changed, err
}

// DeleteWebhook removes one of the account's endpoints. It returns webhooks.ErrNotFound.
func (s *Service) DeleteWebhook(ctx context.Context, client Client, p *Principal, id uuid.UUID) error {
	return s.Webhooks.DeleteWebhook(ctx, s.Grant(p, Develop), ownerOf(p), id, s.entry(client, p.Account.ID, account.WebhookDeleted, ""))
}

// ReplayWebhook sends the events after a position of the feed again, see webhooks.Store.ReplayWebhook.
func (s *Service) ReplayWebhook(ctx context.Context, client Client, p *Principal, id uuid.UUID, position int64) error {
	entry := s.entry(client, p.Account.ID, account.WebhookReplayed, "")
	return s.Webhooks.ReplayWebhook(ctx, s.Grant(p, Develop), ownerOf(p), id, position, entry)
}

// TestWebhook queues a test event, see webhooks.Store.TestWebhook.
func (s *Service) TestWebhook(ctx context.Context, p *Principal, id uuid.UUID, kind feed.Type) error {
	_, err := s.Webhooks.TestWebhook(ctx, s.Grant(p, Develop), ownerOf(p), id, kind)
	return err
}

// RetryDelivery sends an event again at once, see webhooks.Store.RetryDelivery.
func (s *Service) RetryDelivery(ctx context.Context, p *Principal, id uuid.UUID, eventID feed.ID) error {
	return s.Webhooks.RetryDelivery(ctx, s.Grant(p, Develop), ownerOf(p), id, eventID)
}

// ownerOf is the acting account, in both environments.
func ownerOf(p *Principal) feed.Owner { return feed.Owner{AccountID: p.Account.ID} }
