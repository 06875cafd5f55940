package delivery_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/store/events"
	"intents.internal/core/store/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// leased makes endpoints by name whose leases end in a moment, all of one process.
func (s *service) leased(owner event.Owner, lease events.WebhookLease, names ...string) (ids map[string]uuid.UUID) {
	s.Helper()
	ids = map[string]uuid.UUID{}
	for _, name := range names {
		e, _ := s.endpoint(owner, "http://127.0.0.1/")
		ids[name] = e.ID
	}
	pgtest.Exec(s.T, s.store, "UPDATE webhooks SET lease_holder = $1, lease_until = now() + interval '1 minute'", lease.Holder)
	return ids
}

// namesOf are the sorted names of some of the endpoints.
func namesOf(ids map[string]uuid.UUID, some []uuid.UUID) (names []string) {
	for name, id := range ids {
		if slices.Contains(some, id) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leasedFor are the sorted names of the endpoints whose leases last longer than a time.
func (s *service) leasedFor(ids map[string]uuid.UUID, interval string) []string {
	s.Helper()
	var some []uuid.UUID
	for _, id := range ids {
		if pgtest.LookUp[bool](s.T, s.store, "SELECT EXISTS (SELECT FROM webhooks WHERE id = $1 AND lease_until > now() + $2::interval)", id, interval) {
			some = append(some, id)
		}
	}
	return namesOf(ids, some)
}

// A locked lease is not lost and does not delay the others. A lease is lost only to another holder, or with its endpoint.
func TestStore_RenewLeases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	lease := newLease()
	ids := s.leased(s.account(), lease, "free", "locked", "taken", "taken and locked")
	ids["deleted"] = uuid.New()
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_holder = gen_random_uuid() WHERE id IN ($1, $2)", ids["taken"], ids["taken and locked"])
	unlock := s.lock("SELECT FROM webhooks WHERE id IN ($1, $2) FOR UPDATE", ids["locked"], ids["taken and locked"])
	renew := func(locked []string, renewed ...string) {
		t.Helper()
		got, err := s.store.Events.RenewLeases(t.Context(), lease, slices.Collect(maps.Values(ids)))
		if err != nil {
			t.Fatal(err)
		}
		want := [][]string{{"deleted", "taken", "taken and locked"}, locked, renewed}
		if diff := cmp.Diff(want, [][]string{namesOf(ids, got.Lost), namesOf(ids, got.Locked), s.leasedFor(ids, "30 minutes")}); diff != "" {
			t.Errorf("lost, locked and renewed (-want +got):\n%s", diff)
		}
	}
	renew([]string{"locked"}, "free")
	unlock()
	renew(nil, "free", "locked")
}

// A lease is kept while something is due, and while its row is locked, because deliveries may just be made then.
func TestStore_ReleaseIdleLeases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	owner, lease := s.account(), newLease()
	ids := s.leased(owner, lease, "idle", "later", "due", "disabled and due", "locked", "taken and due")
	for _, name := range []string{"later", "due", "disabled and due", "taken and due"} {
		if _, err := s.store.Events.TestWebhook(t.Context(), owner, ids[name]); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_holder = gen_random_uuid() WHERE id = $1", ids["taken and due"])
	pgtest.Exec(t, s.store, "UPDATE webhooks SET enabled = false, disabled_reason = 'owner' WHERE id = $1", ids["disabled and due"])
	pgtest.Exec(t, s.store, "UPDATE deliveries SET next_attempt_at = now() + interval '1 minute' WHERE webhook_id = $1", ids["later"])
	unlock := s.lock("SELECT FROM webhooks WHERE id = $1 FOR UPDATE", ids["locked"])
	release := func(kept ...string) {
		t.Helper()
		got, err := s.store.Events.ReleaseIdleLeases(t.Context(), lease, slices.Collect(maps.Values(ids)))
		if err != nil {
			t.Fatal(err)
		}
		want := [][]string{kept, append(slices.Clone(kept), "taken and due")}
		if diff := cmp.Diff(want, [][]string{namesOf(ids, got), s.leasedFor(ids, "0")}); diff != "" {
			t.Errorf("kept and leased (-want +got):\n%s", diff)
		}
	}
	release("due", "locked")
	unlock()
	release("due")
}

// After the key of the secrets was lost, a rotation has the endpoint work at once, also with a grace for the secret that is lost.
func TestDispatcher_LostKey(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.account()
	e, _ := s.endpoint(owner, in.url)
	sealer, err := webhook.NewSealer([]byte("another key that has 32 bytes.. "), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.rules = &webhook.Rules{Networks: onlyReceiver(), Sealer: sealer}
	secret := s.rotate(e, time.Hour)
	s.start()
	s.intent(owner)
	asynctest.Eventually(t, "the event arrives", func() bool { return len(in.requests()) == 1 })
	if err := verify(t, secret, in.requests()[0]); err != nil {
		t.Error(err)
	}
}

// A process that was paused past its lease records nothing wrong: another one has made the attempt meanwhile.
func TestStore_RecordAttempts_AfterLease(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.account()
	e, _ := s.endpoint(owner, in.url)
	s.intent(owner)
	s.assignPositions()
	paused := newLease()
	done, err := s.store.Events.DispatchEvents(t.Context(), []uuid.UUID{owner.AccountID}, paused)
	if err != nil || len(done.Leased) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	claims := []events.Claim{{WebhookID: done.Leased[0].ID, Limit: 8}}
	held, err := s.store.Events.DueDeliveries(t.Context(), paused, claims)
	if err != nil || len(held[e.ID].Deliveries) != 1 {
		t.Fatalf("%+v, %v", held, err)
	}
	if leased, err := s.store.Events.LeaseDue(t.Context(), newLease(), events.LeaseRoom{Free: 10}, events.LeaseRoom{}); err != nil || len(leased) != 0 {
		t.Errorf("leased %v while another process holds the lease, %v", leased, err)
	}
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_until = now() - interval '1 second'")
	s.start()
	asynctest.Eventually(t, "the other process delivers", func() bool { return s.deliveries(e)[0].Status == webhook.Delivered })
	want := s.deliveries(e)
	late := webhook.Attempt{Outcome: webhook.TimedOut, EndedAt: s.store.Now()}
	record := events.AttemptRecord{Endpoint: held[e.ID].Endpoint, Delivery: held[e.ID].Deliveries[0].Delivery, Attempt: late}
	if _, err := s.store.Events.RecordAttempts(t.Context(), []events.AttemptRecord{record}, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.deliveries(e)); diff != "" {
		t.Errorf("the late outcome was recorded (-before +after):\n%s", diff)
	}
	if s.read(e).FailingSince != nil {
		t.Error("the endpoint is marked as failing")
	}
	if again, err := s.store.Events.DueDeliveries(t.Context(), paused, claims); err != nil || len(again) != 0 {
		t.Errorf("the paused process may still send: %+v, %v", again, err)
	}
}
