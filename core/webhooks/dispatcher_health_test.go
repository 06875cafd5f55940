package webhooks_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
)

// One failure after a silent month disables nothing; several over five days do, and the owners are mailed once.
func TestDispatcher_SeveralFailures(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	mailed := make(chan struct{}, 10)
	s.mailQueued = func() { mailed <- struct{}{} }
	owner := s.Account()
	person := pgtest.NewOwner(t, s.Store)
	viewer := pgtest.NewOwner(t, s.Store)
	for id, role := range map[uuid.UUID]account.Role{person.AccountID: account.RoleOwner, viewer.AccountID: account.RoleViewer} {
		pgtest.Exec(t, s.Store, "INSERT INTO members (account_id, person_id, role, created_at) VALUES ($1, $2, $3, now())", owner.AccountID, id, role)
	}
	e, _ := s.Endpoint(owner, in.url)
	in.answer(status(http.StatusInternalServerError))
	s.start()
	s.intent(owner)
	fail := func(attempts int) {
		t.Helper()
		pgtest.Exec(t, s.Store, "UPDATE deliveries SET next_attempt_at = now() WHERE attempts = $1", attempts-1)
		asynctest.Eventually(t, "the attempt is recorded", func() bool { return len(s.Deliveries(e)) == 1 && s.Deliveries(e)[0].Attempts == attempts })
	}
	fail(1)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET failing_since = now() - interval '30 days', last_failed_at = now() - interval '30 days'")
	fail(2)
	if got := s.Read(e); !got.Enabled || got.Failures != 1 {
		t.Fatalf("after a silent month: %+v", got)
	}
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET failures = 4, failing_since = now() - interval '5 days', last_failed_at = now() - interval '1 day'")
	fail(3)
	if got := s.Read(e); got.Enabled || got.DisabledReason != webhooks.DisabledFailing {
		t.Fatalf("%+v", got)
	}
	<-mailed
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM mails WHERE kind = 'webhook_disabled' AND account_id = $1 AND webhook_id = $2
		AND recipient IN (SELECT email FROM accounts WHERE id IN ($1, $3))`, owner.AccountID, e.ID, person.AccountID); n != 2 {
		t.Errorf("%d of the two owners are mailed", n)
	}
	in.answer(status(http.StatusGone))
	s.Change(e, webhooks.Change{Enabled: new(true)})
	asynctest.Eventually(t, "the event that it was disabled disables it again", func() bool { return s.Read(e).DisabledReason == webhooks.DisabledGone })
	if n := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM mails"); n != 2 {
		t.Errorf("%d mails, also to viewers or again within the hour", n)
	}
}
