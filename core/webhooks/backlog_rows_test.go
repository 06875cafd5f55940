package webhooks_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
)

// backlogAge is the age of the backlog that no process attends to, which is at least so long and at most a minute more.
func (s fixture) backlogAge(atLeast time.Duration) time.Duration {
	s.Helper()
	backlog := s.Backlog()
	if backlog.Age < atLeast || backlog.Age > atLeast+time.Minute || backlog.Unleased != backlog.Age {
		s.Fatalf("the backlog is %+v, want %s and a little", backlog, atLeast)
	}
	return backlog.Age
}

// dispatch makes the deliveries of an owner for a process whose lease ends at once.
func (s fixture) dispatch(owner feed.Owner) {
	s.Helper()
	if _, err := s.Store.Webhooks.DispatchEvents(s.Context(), []uuid.UUID{owner.AccountID}, webhooks.Lease{Holder: uuid.New()}); err != nil {
		s.Fatal(err)
	}
}

// An event is in the backlog while it has no delivery, and while its delivery is due: until its attempt has ended, also while a
// process sends to the endpoint.
func TestBacklog(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner, quiet := s.Account(), s.Account()
	e, _ := s.Endpoint(owner, "https://example.com/", "transfer.failed", "transfer.created")
	s.Endpoint(quiet, "https://example.com/")
	if backlog := s.Backlog(); backlog != (webhooks.Backlog{}) {
		t.Fatalf("without an event: %+v", backlog)
	}
	pgtest.InsertTransfer(t, s.Store, s.Known, owner.AccountID, pgtest.TransferBody)
	pgtest.AssignPositions(t, s.Store)
	first := s.backlogAge(1)
	if later := s.backlogAge(1); later <= first {
		t.Errorf("the age goes from %s to %s", first, later)
	}
	// What was missed before the endpoint was changed waits since then.
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET cursor = 0, updated_at = now() - interval '1 hour'")
	pgtest.Exec(t, s.Store, "UPDATE feed SET position = position - 7200000000")
	s.backlogAge(time.Hour)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET updated_at = now() - interval '3 hours'")
	s.backlogAge(2 * time.Hour)
	for change, undo := range map[string]string{
		"UPDATE accounts SET disabled_at = now()":                        "UPDATE accounts SET disabled_at = NULL",
		"UPDATE webhooks SET enabled = false, disabled_reason = 'owner'": "UPDATE webhooks SET enabled = true, disabled_reason = NULL",
		"UPDATE webhooks SET environment = 'live'":                       "UPDATE webhooks SET environment = 'test'",
		"UPDATE webhooks SET cursor = (SELECT position FROM feed)":       "UPDATE webhooks SET cursor = 0",
	} {
		pgtest.Exec(t, s.Store, change)
		if backlog := s.Backlog(); backlog != (webhooks.Backlog{}) {
			t.Errorf("after %s: %+v", change, backlog)
		}
		pgtest.Exec(t, s.Store, undo)
	}
	s.dispatch(owner)
	s.backlogAge(1)
	pgtest.Exec(t, s.Store, "UPDATE deliveries SET next_attempt_at = now() - interval '5 hours'")
	s.backlogAge(5 * time.Hour)
	for name, change := range map[string]string{
		"a process sends":         "UPDATE webhooks SET lease_until = now() + interval '1 hour' WHERE id = $1",
		"the endpoint is failing": "UPDATE webhooks SET lease_until = '-infinity', failing_since = now() WHERE id = $1",
	} {
		pgtest.Exec(t, s.Store, change, e.ID)
		if backlog := s.Backlog(); backlog.Age < 5*time.Hour || backlog.Unleased != 0 {
			t.Errorf("while %s: %+v", name, backlog)
		}
		pgtest.Exec(t, s.Store, "UPDATE webhooks SET failing_since = NULL")
	}
}
