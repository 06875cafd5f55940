package webhooks_test

import (
	"errors"
	"testing"

	"golang.org/x/sync/errgroup"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/retention"
	"intents.internal/core/webhooks"
)

// orphans is how many deliveries are due for endpoints that do not exist.
func (s fixture) orphans() int {
	s.Helper()
	return pgtest.LookUp[int](s.T, s.Store, `SELECT count(*) FROM deliveries WHERE status = 'pending' AND webhook_id NOT IN (SELECT id FROM webhooks)`)
}

// Whatever ends an endpoint ends what is queued for it, and leaves the rest to the hourly pruning.
func TestWebhookEnd_LeavesNoQueue(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s fixture, e *webhooks.Endpoint) error{
		"its owner": func(s fixture, e *webhooks.Endpoint) error {
			return s.Store.Webhooks.DeleteWebhook(s.Context(), access.OfOperator, e.Owner(), e.ID, pgtest.AuditEntry(e.AccountID, account.WebhookDeleted))
		},
		"the end of the account": func(s fixture, e *webhooks.Endpoint) error {
			return s.Store.Identities.DeleteAccountByID(s.Context(), access.OfOperator, e.AccountID, "", pgtest.Browser, pgtest.Now())
		},
		"psql": func(s fixture, e *webhooks.Endpoint) error {
			pgtest.Exec(s.T, s.Store, `DELETE FROM webhooks WHERE id = $1`, e.ID)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			owner, other := s.Account(), s.Account()
			e, _ := s.Endpoint(owner, "https://example.com/")
			kept, _ := s.Endpoint(other, "https://example.com/")
			s.Enqueue(20, owner, other)
			pgtest.Exec(t, s.Store, `UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL WHERE position <= 5`)
			if err := end(s, e); err != nil {
				t.Fatal(err)
			}
			if n := s.orphans(); n != 0 {
				t.Errorf("%d deliveries are due for a deleted endpoint", n)
			}
			if exists := pgtest.LookUp[bool](t, s.Store, `SELECT EXISTS (SELECT FROM webhooks WHERE id = $1)`, e.ID); exists {
				t.Error("the endpoint exists")
			}
			if left := len(s.Deliveries(kept)); left != 20 {
				t.Errorf("another endpoint has %d deliveries", left)
			}
		})
	}
}

// The queue of an endpoint is cut where one statement would take too long; what is left costs the sweep one entry until it is pruned.
func TestWebhookEnd_LongQueue(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, "https://example.com/")
	s.Enqueue(6000, owner)
	if err := s.Store.Webhooks.DeleteWebhook(t.Context(), access.OfOperator, owner, e.ID, pgtest.AuditEntry(owner.AccountID, account.WebhookDeleted)); err != nil {
		t.Fatal(err)
	}
	if n := s.orphans(); n != 1000 {
		t.Errorf("%d deliveries are left of 6,000", n)
	}
	if _, err := s.Store.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{}); err != nil {
		t.Fatal(err)
	}
	if n := s.orphans(); n != 0 {
		t.Errorf("%d deliveries are left after pruning", n)
	}
}

// What is queued while an endpoint is deleted goes with it, or is refused.
func TestWebhookEnd_Concurrent(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner := s.Account()
	for range 20 {
		e, _ := s.Endpoint(owner, "https://example.com/")
		s.Enqueue(1, owner)
		queued := s.Deliveries(e)[0].EventID
		pgtest.Exec(t, s.Store, `UPDATE deliveries SET status = 'failed', next_attempt_at = NULL`)
		var group errgroup.Group
		for range 4 {
			group.Go(func() error {
				_, err := s.Store.Webhooks.TestWebhook(t.Context(), access.OfOperator, owner, e.ID, feed.TypeWebhookTest)
				return unlessGone(err)
			})
			group.Go(func() error {
				return unlessGone(s.Store.Webhooks.RetryDelivery(t.Context(), access.OfOperator, owner, e.ID, queued))
			})
		}
		group.Go(func() error {
			return s.Store.Webhooks.DeleteWebhook(t.Context(), access.OfOperator, owner, e.ID, pgtest.AuditEntry(owner.AccountID, account.WebhookDeleted))
		})
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.orphans(); n != 0 {
		t.Errorf("%d deliveries are due for deleted endpoints", n)
	}
}

func unlessGone(err error) error {
	if errors.Is(err, webhooks.ErrNotFound) {
		return nil
	}
	return err
}

// The sweep that looks for due deliveries costs the same after any number of endpoints were created, tested and deleted.
func TestLeaseDue_AfterChurn(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner := s.Account()
	s.Endpoint(owner, "https://example.com/")
	s.Enqueue(1, owner)
	pgtest.Exec(t, s.Store, `INSERT INTO webhooks (id, account_id, environment, url, description, enabled, cursor, secret, created_at, updated_at)
		SELECT gen_random_uuid(), $1, 'test', 'https://example.com/', 'churn', true, 0, '', now(), now() FROM generate_series(1, 5000)`, owner.AccountID)
	pgtest.Exec(t, s.Store, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, next_attempt_at, created_at, updated_at)
		SELECT id, gen_random_uuid(), 1, 'webhook.test', 'pending', 0, now(), now(), now() FROM webhooks WHERE description = 'churn'`)
	pgtest.Exec(t, s.Store, `DELETE FROM webhooks WHERE description = 'churn'`)
	steps := pgtest.LookUp[int](t, s.Store, `WITH RECURSIVE first_pending AS (
			(SELECT webhook_id FROM deliveries WHERE status = 'pending' ORDER BY webhook_id LIMIT 1)
			UNION ALL SELECT next.webhook_id FROM first_pending CROSS JOIN LATERAL (
				SELECT webhook_id FROM deliveries WHERE status = 'pending' AND webhook_id > first_pending.webhook_id ORDER BY webhook_id LIMIT 1) AS next
		) SELECT count(*) FROM first_pending`)
	if steps != 1 {
		t.Errorf("the sweep makes %d steps for one endpoint", steps)
	}
	room := webhooks.LeaseRoom{Free: 10, Shared: 10}
	if leased, err := s.Store.Webhooks.LeaseDue(t.Context(), newLease(), room, room); err != nil || len(leased) != 1 {
		t.Errorf("%d endpoints leased, %v", len(leased), err)
	}
}

// An account creates 60 endpoints, whatever becomes of them, and then one a minute; others are not concerned.
func TestInsertWebhook_Rate(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner, other := s.Account(), s.Account()
	create := func(owner feed.Owner) error {
		e, _, err := s.Rules.New(owner, webhooks.Draft{URL: "https://example.com/"}, s.Store.Now())
		if err != nil {
			return err
		}
		if err := s.Store.Webhooks.InsertWebhook(t.Context(), access.OfOperator, e, pgtest.AuditEntry(owner.AccountID, account.WebhookCreated), [32]byte{}); err != nil {
			return err
		}
		return s.Store.Webhooks.DeleteWebhook(t.Context(), access.OfOperator, owner, e.ID, pgtest.AuditEntry(owner.AccountID, account.WebhookDeleted))
	}
	for range webhooks.CreationBurst {
		if err := create(owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(owner); !errors.Is(err, webhooks.ErrTooManyCreations) {
		t.Errorf("beyond the burst: %v", err)
	}
	request := webhooks.CreateRequest{Key: "one", Response: []byte{1}}
	e, _, err := s.Rules.New(owner, webhooks.Draft{URL: "https://example.com/"}, s.Store.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.Webhooks.InsertWebhookOnce(t.Context(), access.OfOperator, e, pgtest.AuditEntry(owner.AccountID, account.WebhookCreated), request); !errors.Is(err, webhooks.ErrTooManyCreations) {
		t.Errorf("with an Idempotency-Key: %v", err)
	}
	if err := create(other); err != nil {
		t.Errorf("another account: %v", err)
	}
	pgtest.Exec(t, s.Store, `UPDATE webhook_quotas SET creations_until = creations_until - interval '1 min' WHERE account_id = $1`, owner.AccountID)
	if err := create(owner); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	if err := create(owner); !errors.Is(err, webhooks.ErrTooManyCreations) {
		t.Errorf("twice a minute later: %v", err)
	}
}
