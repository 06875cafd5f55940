package delivery_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/store/events"
	"intents.internal/core/store/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// backlogAge is the age of the backlog that no process attends to, which is at least so long and at most a minute more.
func (s *service) backlogAge(atLeast time.Duration) time.Duration {
	s.Helper()
	backlog := s.backlog()
	if backlog.Age < atLeast || backlog.Age > atLeast+time.Minute || backlog.Unleased != backlog.Age {
		s.Fatalf("the backlog is %+v, want %s and a little", backlog, atLeast)
	}
	return backlog.Age
}

func (s *service) backlog() events.Backlog {
	s.Helper()
	backlog, err := s.store.Events.Backlog(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return backlog
}

// dispatch makes the deliveries of an owner for a process whose lease ends at once.
func (s *service) dispatch(owner event.Owner) {
	s.Helper()
	if _, err := s.store.Events.DispatchEvents(s.Context(), []uuid.UUID{owner.AccountID}, events.WebhookLease{Holder: uuid.New()}); err != nil {
		s.Fatal(err)
	}
}

// An event is in the backlog while it has no delivery, and while its delivery is due: until its attempt has ended, also while a
// process sends to the endpoint.
func TestStore_Backlog(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner, quiet := s.account(), s.account()
	e, _ := s.endpoint(owner, in.url, "transfer.failed", "transfer.created")
	s.endpoint(quiet, in.url)
	if backlog := s.backlog(); backlog != (events.Backlog{}) {
		t.Fatalf("without an event: %+v", backlog)
	}
	s.intent(owner)
	s.assignPositions()
	first := s.backlogAge(1)
	if later := s.backlogAge(1); later <= first {
		t.Errorf("the age goes from %s to %s", first, later)
	}
	// What was missed before the endpoint was changed waits since then.
	pgtest.Exec(t, s.store, "UPDATE webhooks SET cursor = 0, updated_at = now() - interval '1 hour'")
	pgtest.Exec(t, s.store, "UPDATE feed SET position = position - 7200000000")
	s.backlogAge(time.Hour)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET updated_at = now() - interval '3 hours'")
	s.backlogAge(2 * time.Hour)
	for change, undo := range map[string]string{
		"UPDATE accounts SET disabled_at = now()":                        "UPDATE accounts SET disabled_at = NULL",
		"UPDATE accounts SET deleted_at = now()":                         "UPDATE accounts SET deleted_at = NULL",
		"UPDATE webhooks SET enabled = false, disabled_reason = 'owner'": "UPDATE webhooks SET enabled = true, disabled_reason = NULL",
		"UPDATE webhooks SET environment = 'live'":                       "UPDATE webhooks SET environment = 'test'",
		"UPDATE webhooks SET cursor = (SELECT position FROM feed)":       "UPDATE webhooks SET cursor = 0",
	} {
		pgtest.Exec(t, s.store, change)
		if backlog := s.backlog(); backlog != (events.Backlog{}) {
			t.Errorf("after %s: %+v", change, backlog)
		}
		pgtest.Exec(t, s.store, undo)
	}
	s.dispatch(owner)
	s.backlogAge(1)
	pgtest.Exec(t, s.store, "UPDATE deliveries SET next_attempt_at = now() - interval '5 hours'")
	s.backlogAge(5 * time.Hour)
	for name, change := range map[string]string{
		"a process sends":         "UPDATE webhooks SET lease_until = now() + interval '1 hour' WHERE id = $1",
		"the endpoint is failing": "UPDATE webhooks SET lease_until = '-infinity', failing_since = now() WHERE id = $1",
	} {
		pgtest.Exec(t, s.store, change, e.ID)
		if backlog := s.backlog(); backlog.Age < 5*time.Hour || backlog.Unleased != 0 {
			t.Errorf("while %s: %+v", name, backlog)
		}
		pgtest.Exec(t, s.store, "UPDATE webhooks SET failing_since = NULL")
	}
}

// The metrics are those of the backlog, while a delivery cannot be sent and after it was.
func TestDispatcher_BacklogMetric(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.account()
	e, _ := s.endpoint(owner, in.url)
	s.enqueue(1, owner)
	pgtest.Exec(t, s.store, "UPDATE deliveries SET next_attempt_at = now() - interval '2 hours'")
	release := s.lock("SELECT FROM webhooks FOR NO KEY UPDATE")
	c := s.start()
	for _, metric := range []string{"intents_core_webhook_unattended_seconds", "intents_core_webhook_backlog_age_seconds"} {
		asynctest.Eventually(t, "the metric tells of it", func() bool { return c.count(t, metric, "") > 0 })
		if age := c.count(t, metric, ""); age < 7200 || age > 7260 {
			t.Errorf("%s is %v, want two hours", metric, age)
		}
	}
	release()
	asynctest.Eventually(t, "the event arrives", func() bool { return s.deliveries(e)[0].Status == webhook.Delivered })
	if backlog := s.backlog(); backlog != (events.Backlog{}) {
		t.Errorf("after that: %+v", backlog)
	}
}
