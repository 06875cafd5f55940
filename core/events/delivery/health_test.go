package delivery_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/events/webhook"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/events"
	"intents.internal/core/store/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// attempted leases all endpoints and returns the result of one attempt at each.
func (s *service) attempted(attempts map[*webhook.Endpoint]webhook.Attempt) (records []events.AttemptRecord, ordinal map[*webhook.Endpoint]int) {
	s.Helper()
	lease := newLease()
	room := events.LeaseRoom{Free: 100, Shared: 400}
	if _, err := s.store.Events.LeaseDue(s.Context(), lease, room, room); err != nil {
		s.Fatal(err)
	}
	ordinal = map[*webhook.Endpoint]int{}
	for e, attempt := range attempts {
		due, err := s.store.Events.DueDeliveries(s.Context(), lease, []events.Claim{{WebhookID: e.ID, Limit: 1}})
		if err != nil || len(due[e.ID].Deliveries) != 1 {
			s.Fatalf("%+v, %v", due, err)
		}
		attempt.EndedAt = s.store.Now()
		ordinal[e] = len(records)
		records = append(records, events.AttemptRecord{Endpoint: due[e.ID].Endpoint, Delivery: due[e.ID].Deliveries[0].Delivery, Attempt: attempt})
	}
	return records, ordinal
}

var (
	succeeded = webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 204}
	gone      = webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: http.StatusGone}
	timedOut  = webhook.Attempt{Outcome: webhook.TimedOut}
)

// A result is written with its effects on the endpoint or not at all, and one that cannot be written costs no other endpoint's.
func TestStore_RecordAttempts_Atomic(t *testing.T) {
	t.Parallel()
	s := newService(t)
	owner, other := s.account(), s.account()
	broken, _ := s.endpoint(owner, "http://127.0.0.1/")
	well, _ := s.endpoint(other, "http://127.0.0.1/")
	s.enqueue(1, owner, other)
	pgtest.Exec(t, s.store, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	pgtest.Exec(t, s.store, `CREATE TRIGGER refuse BEFORE INSERT ON feed FOR EACH ROW EXECUTE FUNCTION refuse()`)
	records, ordinal := s.attempted(map[*webhook.Endpoint]webhook.Attempt{broken: gone, well: succeeded})
	recorded, err := s.store.Events.RecordAttempts(t.Context(), records, true)
	if err != nil || recorded.Err == nil || !cmp.Equal(recorded.Lost, []int{ordinal[broken]}) || recorded.Disabled != nil {
		t.Errorf("%+v, %v", recorded, err)
	}
	if d := s.deliveries(well)[0]; d.Status != webhook.Delivered {
		t.Errorf("the other endpoint's result is lost: %+v", d)
	}
	if d := s.deliveries(broken)[0]; d.Attempts != 0 || !s.read(broken).Enabled {
		t.Errorf("half a result is written: %+v, enabled %t", d, s.read(broken).Enabled)
	}
	pgtest.Exec(t, s.store, `DROP TRIGGER refuse ON feed`)
	recorded, err = s.store.Events.RecordAttempts(t.Context(), records, true)
	if err != nil || !cmp.Equal(recorded, events.Recorded{Disabled: []webhook.Reason{webhook.DisabledGone}}) {
		t.Errorf("%+v, %v", recorded, err)
	}
	if d := s.deliveries(broken)[0]; d.Attempts != 1 || s.read(broken).DisabledReason != webhook.DisabledGone {
		t.Errorf("%+v, %q", d, s.read(broken).DisabledReason)
	}
}

// A result waits while its endpoint or its delivery is locked, and those of other endpoints do not. A failure at a URL that the
// endpoint no longer has leaves the delivery due.
func TestStore_RecordAttempts_Locked(t *testing.T) {
	t.Parallel()
	s := newService(t)
	one, two, three, four := s.account(), s.account(), s.account(), s.account()
	locked, _ := s.endpoint(one, "http://127.0.0.1/")
	lockedDelivery, _ := s.endpoint(two, "http://127.0.0.1/")
	free, _ := s.endpoint(three, "http://127.0.0.1/")
	moved, _ := s.endpoint(four, "http://127.0.0.1/")
	s.enqueue(1, one, two, three, four)
	records, ordinal := s.attempted(map[*webhook.Endpoint]webhook.Attempt{locked: timedOut, lockedDelivery: succeeded, free: timedOut, moved: timedOut})
	s.change(moved, webhook.Change{URL: new("http://127.0.0.1/moved")})
	unlock := s.lock("SELECT FROM webhooks WHERE id = $1 FOR UPDATE", locked.ID)
	unlockDelivery := s.lock("SELECT FROM deliveries WHERE webhook_id = $1 FOR UPDATE", lockedDelivery.ID)
	store := pgtest.OpenImpatient(t, s.url)
	recorded, err := store.Events.RecordAttempts(t.Context(), records, false)
	if err != nil || len(recorded.Busy) != 2 || recorded.Lost != nil {
		t.Errorf("%+v, %v", recorded, err)
	}
	if s.read(free).Failures != 1 || s.deliveries(free)[0].Attempts != 1 {
		t.Errorf("the result of the endpoint that is not locked is not recorded")
	}
	unlock()
	unlockDelivery()
	var later []events.AttemptRecord
	for _, n := range recorded.Busy {
		later = append(later, records[n])
	}
	if recorded, err := store.Events.RecordAttempts(t.Context(), later, false); err != nil || !cmp.Equal(recorded, events.Recorded{}) {
		t.Errorf("%+v, %v", recorded, err)
	}
	if s.read(locked).Failures != 1 || s.deliveries(lockedDelivery)[0].Status != webhook.Delivered {
		t.Error("the results of the endpoints that were locked are not recorded later")
	}
	if d := s.deliveries(moved)[0]; d.Attempts != 0 || s.read(moved).FailingSince != nil {
		t.Errorf("result %d counts for the new URL: %+v", ordinal[moved], d)
	}
}

// One failure after a silent month disables nothing; several over five days do, and the owners are mailed once.
func TestDispatcher_SeveralFailures(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	mailed := make(chan struct{}, 10)
	s.mailQueued = func() { mailed <- struct{}{} }
	owner := s.account()
	person := pgtest.InsertAccount(t, s.store)
	viewer := pgtest.InsertAccount(t, s.store)
	for id, role := range map[uuid.UUID]account.Role{person.AccountID: account.RoleOwner, viewer.AccountID: account.RoleViewer} {
		pgtest.Exec(t, s.store, "INSERT INTO members (account_id, person_id, role, created_at) VALUES ($1, $2, $3, now())", owner.AccountID, id, role)
	}
	e, _ := s.endpoint(owner, in.url)
	in.answer(status(http.StatusInternalServerError))
	s.start()
	s.intent(owner)
	fail := func(attempts int) {
		t.Helper()
		pgtest.Exec(t, s.store, "UPDATE deliveries SET next_attempt_at = now() WHERE attempts = $1", attempts-1)
		asynctest.Eventually(t, "the attempt is recorded", func() bool { return len(s.deliveries(e)) == 1 && s.deliveries(e)[0].Attempts == attempts })
	}
	fail(1)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET failing_since = now() - interval '30 days', last_failed_at = now() - interval '30 days'")
	fail(2)
	if got := s.read(e); !got.Enabled || got.Failures != 1 {
		t.Fatalf("after a silent month: %+v", got)
	}
	pgtest.Exec(t, s.store, "UPDATE webhooks SET failures = 4, failing_since = now() - interval '5 days', last_failed_at = now() - interval '1 day'")
	fail(3)
	if got := s.read(e); got.Enabled || got.DisabledReason != webhook.DisabledFailing {
		t.Fatalf("%+v", got)
	}
	<-mailed
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM mails WHERE kind = 'webhook_disabled' AND account_id = $1 AND webhook_id = $2
		AND recipient IN (SELECT email FROM accounts WHERE id IN ($1, $3))`, owner.AccountID, e.ID, person.AccountID); n != 2 {
		t.Errorf("%d of the two owners are mailed", n)
	}
	in.answer(status(http.StatusGone))
	s.change(e, webhook.Change{Enabled: new(true)})
	asynctest.Eventually(t, "the event that it was disabled disables it again", func() bool { return s.read(e).DisabledReason == webhook.DisabledGone })
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM mails"); n != 2 {
		t.Errorf("%d mails, also to viewers or again within the hour", n)
	}
}
