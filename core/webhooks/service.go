package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

// Service is what accounts do with their endpoints: who may, what a person must confirm, and the entry in the audit log. It is safe for
// concurrent use.
type Service struct {
	store      *Store
	rules      *Rules
	identities *identity.Service
}

// NewService is the service of the operator's rules, which are nil where webhooks are not configured.
func NewService(store *Store, rules *Rules, identities *identity.Service) *Service {
	return &Service{store: store, rules: rules, identities: identities}
}

// Configured reports whether the operator has configured webhooks. Otherwise no endpoint is made or changed.
func (s *Service) Configured() bool { return s.rules != nil }

// Caller is who acts on the endpoints of an account: a person who is signed in, or an API key.
type Caller struct {
	// Owner is the account, in both environments for a person.
	Owner feed.Owner
	actor account.Actor
	// keyID is uuid.Nil for a person, and change nil for a key.
	keyID  uuid.UUID
	change *identity.Change
}

// Person is a caller who is signed in, with the browser that sends the request.
func (s *Service) Person(client identity.Client, p *identity.Principal) Caller {
	return Caller{Owner: feed.Owner{AccountID: p.Account.ID}, actor: client.Actor(), change: s.identities.Change(client, p)}
}

// Key is a caller with an API key of an account and an environment, which a gateway has verified.
func Key(owner feed.Owner, keyID uuid.UUID, client identity.Client) Caller {
	return Caller{Owner: owner, actor: client.Actor(), keyID: keyID}
}

// grant reads the rights of the caller in the transaction of the write.
func (c Caller) grant() access.Grant {
	if c.change == nil {
		return access.OfKey(c.Owner.AccountID)
	}
	return c.change.Grant(c.Owner.AccountID, identity.Develop)
}

// entry is an entry of the audit log about what a caller does.
func (s *Service) entry(by Caller, action account.Action) (account.AuditEntry, error) {
	entry, err := account.NewAuditEntry(by.Owner.AccountID, by.actor, action, s.store.Now())
	if by.keyID != uuid.Nil {
		entry = entry.ByKey(by.keyID)
	}
	return entry, err
}

// New returns an endpoint that Create stores, and its secret. It returns the errors of Rules.New.
func (s *Service) New(owner feed.Owner, d Draft) (*Endpoint, Secret, error) {
	return s.rules.New(owner, d, s.store.Now())
}

// Create stores a new endpoint. A person confirms a live one by a fresh session or the password. formToken is the SHA-256 of a form's
// one-time token, zero for none. It returns what Store.InsertWebhook returns, and the errors of identity.Change.Confirm.
func (s *Service) Create(ctx context.Context, by Caller, e *Endpoint, formToken [32]byte) error {
	entry, err := s.entry(by, account.WebhookCreated)
	if err != nil {
		return err
	}
	if by.change == nil {
		return s.store.InsertWebhook(ctx, by.grant(), e, entry, formToken)
	}
	given := effectOf(nil, e)
	if err := by.change.Confirm(ctx, given); err != nil {
		return err
	}
	entry.Notice = by.change.Notice(given)
	return by.change.Run(ctx, func() error {
		return s.store.InsertWebhook(ctx, by.change.GrantEffect(e.AccountID, identity.Develop, given), e, entry, formToken)
	})
}

// CreateOnce is Create for a key's request with an idempotency key. fingerprint is a hash of what it asks for, and response the response,
// which is stored sealed. It returns the first response to the request, and whether an earlier request got it.
func (s *Service) CreateOnce(
	ctx context.Context, by Caller, e *Endpoint, idempotencyKey string, fingerprint [32]byte, response []byte,
) (first []byte, replayed bool, err error) {
	entry, err := s.entry(by, account.WebhookCreated)
	if err != nil {
		return nil, false, err
	}
	earlier, err := s.store.InsertWebhookOnce(ctx, by.grant(), e, entry, CreateRequest{
		Key: idempotencyKey, Fingerprint: fingerprint, Response: s.rules.Sealer.SealResponse(e.ID, response),
	})
	if earlier == nil || err != nil {
		return response, false, err
	}
	first, err = s.rules.Sealer.OpenResponse(earlier.WebhookID, earlier.Sealed)
	return first, true, err
}

// Update changes an endpoint. A person confirms what a live one gives more than before. It returns ErrNotFound, the errors of
// Rules.Change, and those of identity.Change.Confirm.
func (s *Service) Update(ctx context.Context, by Caller, id uuid.UUID, change Change) (*Endpoint, error) {
	return s.change(ctx, by, id, account.WebhookUpdated, func(e *Endpoint) (string, error) {
		return s.rules.Change(e, change, s.store.Now())
	})
}

// RotateSecret gives an endpoint a new secret; the one that it replaces signs too for the grace period. It returns the errors of Update.
func (s *Service) RotateSecret(ctx context.Context, by Caller, id uuid.UUID, grace time.Duration) (rotated *Endpoint, secret Secret, err error) {
	rotated, err = s.change(ctx, by, id, account.WebhookSecretRotated, func(e *Endpoint) (detail string, err error) {
		secret, detail, err = s.rules.Rotate(e, grace, s.store.Now())
		return detail, err
	})
	return rotated, secret, err
}

// change applies a change to an endpoint, and writes the detail that apply returns to the audit log as the action.
func (s *Service) change(
	ctx context.Context, by Caller, id uuid.UUID, action account.Action, apply func(*Endpoint) (detail string, err error),
) (changed *Endpoint, err error) {
	entry, err := s.entry(by, action)
	if err != nil {
		return nil, err
	}
	if by.change == nil {
		return s.store.ChangeWebhook(ctx, by.grant(), by.Owner, id, &entry, apply)
	}
	err = by.change.Run(ctx, func() (err error) {
		changed, err = s.store.ChangeWebhook(ctx, by.grant(), by.Owner, id, &entry, func(e *Endpoint) (string, error) {
			before := *e
			detail, err := apply(e)
			if err != nil {
				return "", err
			}
			entry.Notice, err = by.change.Allow(effectOf(&before, e))
			return detail, err
		})
		return err
	})
	return changed, err
}

// effectOf compares an endpoint with what it was before, nil for a new one. Events have amounts and addresses, and the secret signs what
// the receiver believes.
func effectOf(before, after *Endpoint) identity.Effect {
	if after.Environment != network.Live {
		return identity.NoEffect
	}
	switch {
	case before == nil, after.URL != before.URL, after.Enabled && !before.Enabled, !slices.Equal(before.Secrets.Current, after.Secrets.Current),
		before.Types != nil && (after.Types == nil || slices.ContainsFunc(after.Types, func(t string) bool { return !slices.Contains(before.Types, t) })):
		return identity.GivesLiveWebhook
	}
	return identity.NoEffect
}

// Delete removes an endpoint: no new attempt starts. It returns ErrNotFound.
func (s *Service) Delete(ctx context.Context, by Caller, id uuid.UUID) error {
	entry, err := s.entry(by, account.WebhookDeleted)
	if err != nil {
		return err
	}
	return s.store.DeleteWebhook(ctx, by.grant(), by.Owner, id, entry)
}

// Replay sends the events after a position of the feed again, see Store.ReplayWebhook.
func (s *Service) Replay(ctx context.Context, by Caller, id uuid.UUID, position int64) error {
	entry, err := s.entry(by, account.WebhookReplayed)
	if err != nil {
		return err
	}
	return s.store.ReplayWebhook(ctx, by.grant(), by.Owner, id, position, entry)
}

// Test queues a test event of a type and returns its id, see Store.TestWebhook.
func (s *Service) Test(ctx context.Context, by Caller, id uuid.UUID, kind feed.Type) (feed.ID, error) {
	return s.store.TestWebhook(ctx, by.grant(), by.Owner, id, kind)
}

// RetryDelivery sends an event again at once, see Store.RetryDelivery.
func (s *Service) RetryDelivery(ctx context.Context, by Caller, id uuid.UUID, eventID feed.ID) error {
	return s.store.RetryDelivery(ctx, by.grant(), by.Owner, id, eventID)
}

// Find finds one of an owner's endpoints, or returns ErrNotFound.
func (s *Service) Find(ctx context.Context, owner feed.Owner, id uuid.UUID) (*Endpoint, error) {
	return s.store.Webhook(ctx, owner, id)
}

// List returns an owner's endpoints, newest first.
func (s *Service) List(ctx context.Context, owner feed.Owner) ([]*Endpoint, error) {
	return s.store.Webhooks(ctx, owner)
}

// Deliveries reads a page of the deliveries of an endpoint, see Store.Deliveries.
func (s *Service) Deliveries(ctx context.Context, owner feed.Owner, id uuid.UUID, q DeliveryQuery) ([]Delivery, *DeliveryCursor, error) {
	return s.store.Deliveries(ctx, owner, id, q)
}

// Delivery reads a delivery and its endpoint, see Store.Delivery.
func (s *Service) Delivery(ctx context.Context, owner feed.Owner, id uuid.UUID, eventID feed.ID) (*DeliveryDetails, *Endpoint, error) {
	return s.store.Delivery(ctx, owner, id, eventID)
}

// DeliveriesOfIntent reads the newest deliveries of an intent's events, and the URLs of their endpoints.
func (s *Service) DeliveriesOfIntent(ctx context.Context, owner feed.Owner, intentID uuid.UUID) ([]Delivery, map[uuid.UUID]string, error) {
	return s.store.DeliveriesOfIntent(ctx, owner, intentID)
}
