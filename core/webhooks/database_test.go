package webhooks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
)

// database has accounts and endpoints, and the rules that these obey.
type database struct {
	*testing.T

	URL   string
	Store *rooms.Rooms
	Known *registry.Snapshot
	Rules *webhooks.Rules
}

// newDatabase makes a database whose endpoints may be in these networks.
func newDatabase(t *testing.T, networks *outbound.Networks) *database {
	t.Helper()
	s := &database{T: t, URL: pgtest.Database(t), Rules: pgtest.WebhookRules(t, make([]byte, 32), nil)}
	s.Store, s.Rules.Networks = pgtest.OpenImpatient(t, s.URL), networks
	s.Known = pgtest.LoadRegistry(t, s.Store)
	return s
}

// newLease is an hour's lease of a process of its own.
func newLease() webhooks.Lease {
	return webhooks.Lease{Holder: uuid.New(), TTL: time.Hour}
}

// Lock locks rows as another transaction does, until release is called.
func (s *database) Lock(query string, values ...any) (release func()) {
	s.Helper()
	tx := pgtest.Lock(s.T, s.Store, query, values...)
	return func() { pgtest.Must(s.T, tx.Rollback()) }
}

// Account makes an account and returns the owner of its test events.
func (s *database) Account() feed.Owner {
	s.Helper()
	return pgtest.NewOwner(s.T, s.Store)
}

// Endpoint makes an endpoint and returns it with the text of its secret.
func (s *database) Endpoint(owner feed.Owner, url string, types ...string) (*webhooks.Endpoint, string) {
	s.Helper()
	e, secret, err := s.Rules.New(owner, webhooks.Draft{URL: url, Types: types}, s.Store.Now())
	pgtest.Must(s.T, err)
	entry := pgtest.AuditEntry(owner.AccountID, account.WebhookCreated)
	pgtest.Must(s.T, s.Store.Webhooks.InsertWebhook(s.Context(), access.OfOperator, e, entry, [32]byte{}))
	return e, secret.Reveal()
}

// Change changes an endpoint as its owner does.
func (s *database) Change(e *webhooks.Endpoint, change webhooks.Change) {
	s.Helper()
	apply := func(e *webhooks.Endpoint) (string, error) { return s.Rules.Change(e, change, s.Store.Now()) }
	entry := pgtest.AuditEntry(e.AccountID, account.WebhookUpdated)
	_, err := s.Store.Webhooks.ChangeWebhook(s.Context(), access.OfOperator, e.Owner(), e.ID, &entry, apply)
	pgtest.Must(s.T, err)
}

// Read is the endpoint as it is stored.
func (s *database) Read(e *webhooks.Endpoint) *webhooks.Endpoint {
	s.Helper()
	found, err := s.Store.Webhooks.Webhook(s.Context(), e.Owner(), e.ID)
	pgtest.Must(s.T, err)
	return found
}

// Deliveries are those of an endpoint, newest first.
func (s *database) Deliveries(e *webhooks.Endpoint) []webhooks.Delivery {
	s.Helper()
	found, _, err := s.Store.Webhooks.Deliveries(s.Context(), e.Owner(), e.ID, webhooks.DeliveryQuery{Limit: 1000})
	pgtest.Must(s.T, err)
	return found
}

// AddEvents adds n events to an owner's feed, which are not an intent's.
func (s *database) AddEvents(owner feed.Owner, n int) {
	s.Helper()
	pgtest.Exec(s.T, s.Store, `WITH advanced AS (UPDATE feed_state SET last_position = last_position + $4 RETURNING last_position)
		INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
		SELECT last_position - n, $1, $2, $3, clock_timestamp(), json_build_object('id', gen_random_uuid()) FROM advanced, generate_series(0, $4 - 1) AS n`,
		owner.AccountID, owner.Environment, feed.TypeWebhookDisabled, n)
}

// Made counts the deliveries of each account.
func (s *database) Made() map[uuid.UUID]int {
	s.Helper()
	text := pgtest.LookUp[string](s.T, s.Store, `SELECT coalesce(json_object_agg(account_id, made), '{}')::text FROM (
		SELECT account_id, count(*) AS made FROM deliveries JOIN webhooks ON webhooks.id = webhook_id GROUP BY 1) AS accounts`)
	var made map[uuid.UUID]int
	pgtest.Must(s.T, json.Unmarshal([]byte(text), &made))
	return made
}

// Enqueue makes due deliveries of test events to all endpoints of accounts.
func (s *database) Enqueue(each int, owners ...feed.Owner) {
	s.Helper()
	for _, owner := range owners {
		pgtest.Exec(s.T, s.Store, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, next_attempt_at, created_at, updated_at)
			SELECT id, gen_random_uuid(), n, 'webhook.test', 'pending', 0, now(), now(), now() FROM webhooks, generate_series(1, $2) AS n WHERE account_id = $1`,
			owner.AccountID, each)
	}
}

// Backlog is the backlog of deliveries.
func (s *database) Backlog() webhooks.Backlog {
	s.Helper()
	backlog, err := s.Store.Webhooks.Backlog(s.Context())
	pgtest.Must(s.T, err)
	return backlog
}
