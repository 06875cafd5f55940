package pgtest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/identities"
	"intents.internal/core/outbound"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
)

// Webhooks is a database with accounts and endpoints, and the rules that these obey.
type Webhooks struct {
	*testing.T

	URL   string
	Store *rooms.Rooms
	Known *registry.Snapshot
	Rules *webhooks.Rules
}

// NewWebhooks makes a database whose endpoints may be in these networks.
func NewWebhooks(t *testing.T, networks *outbound.Networks) *Webhooks {
	t.Helper()
	s := &Webhooks{T: t, URL: Database(t), Rules: WebhookRules(t, make([]byte, 32), nil)}
	s.Store, s.Rules.Networks = OpenImpatient(t, s.URL), networks
	s.Known = LoadRegistry(t, s.Store)
	return s
}

// NewLease is an hour's lease of a process of its own.
func NewLease() webhooks.Lease {
	return webhooks.Lease{Holder: uuid.New(), TTL: time.Hour}
}

// Lock locks rows as another transaction does, until release is called.
func (s *Webhooks) Lock(query string, values ...any) (release func()) {
	s.Helper()
	tx, err := s.Store.Pool().BeginTx(context.WithoutCancel(s.Context()), nil)
	if err == nil {
		_, err = tx.ExecContext(s.Context(), query, values...)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = tx.Rollback() }) // where the test did not get to it
	return func() {
		s.Helper()
		if err := tx.Rollback(); err != nil {
			s.Fatal(err)
		}
	}
}

// Account makes an account and returns the owner of its test events.
func (s *Webhooks) Account() feed.Owner {
	s.Helper()
	return InsertAccount(s.T, s.Store)
}

// Entry is an entry about an account.
func (s *Webhooks) Entry(accountID uuid.UUID, action account.Action) account.AuditEntry {
	s.Helper()
	entry, err := account.NewAuditEntry(accountID, account.Actor{}, action, time.Now())
	if err != nil {
		s.Fatal(err)
	}
	return entry
}

// Endpoint makes an endpoint and returns it with the text of its secret.
func (s *Webhooks) Endpoint(owner feed.Owner, url string, types ...string) (*webhooks.Endpoint, string) {
	s.Helper()
	e, secret, err := s.Rules.New(owner, webhooks.Draft{URL: url, Types: types}, s.Store.Now())
	if err != nil {
		s.Fatal(err)
	}
	if err := s.Store.Webhooks.InsertWebhook(s.Context(), identities.OfOperator, e, s.Entry(owner.AccountID, account.WebhookCreated), [32]byte{}); err != nil {
		s.Fatal(err)
	}
	return e, secret.Reveal()
}

// Change changes an endpoint as its owner does.
func (s *Webhooks) Change(e *webhooks.Endpoint, change webhooks.Change) {
	s.Helper()
	_, err := s.Store.Webhooks.ChangeWebhook(s.Context(), identities.OfOperator, e.Owner(), e.ID, new(s.Entry(e.AccountID, account.WebhookUpdated)), func(e *webhooks.Endpoint) (string, error) {
		return s.Rules.Change(e, change, s.Store.Now())
	})
	if err != nil {
		s.Fatal(err)
	}
}

// Read is the endpoint as it is stored.
func (s *Webhooks) Read(e *webhooks.Endpoint) *webhooks.Endpoint {
	s.Helper()
	found, err := s.Store.Webhooks.Webhook(s.Context(), e.Owner(), e.ID)
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// Deliveries are those of an endpoint, newest first.
func (s *Webhooks) Deliveries(e *webhooks.Endpoint) []webhooks.Delivery {
	s.Helper()
	found, _, err := s.Store.Webhooks.Deliveries(s.Context(), e.Owner(), e.ID, webhooks.DeliveryQuery{Limit: 1000})
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// AddEvents adds n events to an owner's feed, which are not an intent's.
func (s *Webhooks) AddEvents(owner feed.Owner, n int) {
	s.Helper()
	Exec(s.T, s.Store, `WITH advanced AS (UPDATE feed_state SET last_position = last_position + $4 RETURNING last_position)
		INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
		SELECT last_position - n, $1, $2, $3, clock_timestamp(), json_build_object('id', gen_random_uuid()) FROM advanced, generate_series(0, $4 - 1) AS n`,
		owner.AccountID, owner.Environment, feed.TypeWebhookDisabled, n)
}

// Made counts the deliveries of each account.
func (s *Webhooks) Made() map[uuid.UUID]int {
	s.Helper()
	text := LookUp[string](s.T, s.Store, `SELECT coalesce(json_object_agg(account_id, made), '{}')::text FROM (
		SELECT account_id, count(*) AS made FROM deliveries JOIN webhooks ON webhooks.id = webhook_id GROUP BY 1) AS accounts`)
	var made map[uuid.UUID]int
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		s.Fatal(err)
	}
	return made
}

// Enqueue makes due deliveries of test events to all endpoints of accounts.
func (s *Webhooks) Enqueue(each int, owners ...feed.Owner) {
	s.Helper()
	for _, owner := range owners {
		Exec(s.T, s.Store, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, next_attempt_at, created_at, updated_at)
			SELECT id, gen_random_uuid(), n, 'webhook.test', 'pending', 0, now(), now(), now() FROM webhooks, generate_series(1, $2) AS n WHERE account_id = $1`,
			owner.AccountID, each)
	}
}

// Backlog is the backlog of deliveries.
func (s *Webhooks) Backlog() webhooks.Backlog {
	s.Helper()
	backlog, err := s.Store.Webhooks.Backlog(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return backlog
}
