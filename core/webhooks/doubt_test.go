package webhooks_test

import (
	"testing"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
)

// Events whose commit, or whose position's commit, waits for a standby are visible once the wait is cancelled, and a failover loses them:
// neither the feed nor a webhook tells of them until a standby is back.
func TestFeed_CommitInDoubt(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	s := fixture{&database{T: t, URL: servers.Primary.URL, Rules: pgtest.WebhookRules(t, make([]byte, 32), nil)}}
	s.Store, s.Rules.Networks = pgtest.Open(t, s.URL), outbound.NewNetworks(nil)
	pgtest.Exec(t, s.Store, `ALTER ROLE CURRENT_USER SET synchronous_commit = on`) // a test's server has it off
	s.Known = pgtest.LoadRegistry(t, s.Store)
	owner := s.Account()
	endpoint, _ := s.Endpoint(owner, "https://example.com/")
	lease := newLease()
	pgtest.InsertTransfer(t, s.Store, s.Known, owner.AccountID, pgtest.TransferBody)
	pgtest.Exec(t, s.Store, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	pgtest.Exec(t, s.Store, `SELECT pg_reload_conf()`)
	hurried := pgtest.OpenWith(t, s.URL, postgres.Options{StatementTimeout: time.Second})
	other := pgtest.OpenWith(t, s.URL, postgres.Options{StatementTimeout: time.Second}) // a core that has assigned no positions

	if err := servers.Replica.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := hurried.Feed.AssignPositions(t.Context(), true, false); err == nil {
		t.Error("a round is committed without a standby")
	}
	asynctest.Eventually(t, "the position is visible", func() bool { return pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM feed`) == 1 })
	pgtest.Exec(t, s.Store, `SET synchronous_commit = local; INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, next_attempt_at, created_at, updated_at)
		SELECT '`+endpoint.ID.String()+`', id, position, type, 'pending', 0, now(), now(), now() FROM feed; UPDATE webhooks SET lease_holder = '`+lease.Holder.String()+`',
		lease_until = now() + interval '1 hour'; RESET synchronous_commit`)
	read := func() (int, error) {
		page, err := other.Feed.EventPage(t.Context(), owner, 0, feed.Filter{}, 10)
		return len(page.Events), err
	}
	send := func() (int, error) {
		due, err := other.Webhooks.DueDeliveries(t.Context(), lease, []webhooks.Claim{{WebhookID: endpoint.ID, Limit: 1}})
		return len(due[endpoint.ID].Deliveries), err
	}
	for name, tell := range map[string]func() (int, error){"the feed": read, "a webhook": send} {
		if n, err := tell(); n != 0 || err == nil || !postgres.Unavailable(err) {
			t.Errorf("%s tells of %d events in doubt, %v", name, n, err)
		}
	}
	if _, err := hurried.Feed.LatestPosition(t.Context()); err == nil {
		t.Error("a cursor behind an event in doubt is handed out")
	}

	pgtest.NewReplica(t, servers.Primary)
	for name, tell := range map[string]func() (int, error){"the feed": read, "a webhook": send} {
		asynctest.Eventually(t, name+" tells of it", func() bool { n, err := tell(); return n == 1 && err == nil })
	}
}
