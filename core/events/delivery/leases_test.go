package delivery_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/events/webhook"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// A lease whose row somebody has locked is not lost, and holds up no other. One is lost to another holder alone, or with its endpoint.
func TestStore_RenewLeases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	owner := s.account()
	lease := newLease()
	ids := map[string]uuid.UUID{"deleted": uuid.New()}
	for _, name := range []string{"free", "locked", "taken", "taken and locked"} {
		e, _ := s.endpoint(owner, "http://127.0.0.1/")
		ids[name] = e.ID
	}
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_holder = $1, lease_until = now() + interval '1 second'", lease.Holder)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_holder = gen_random_uuid() WHERE id IN ($1, $2)", ids["taken"], ids["taken and locked"])
	unlock := s.lock("SELECT FROM webhooks WHERE id IN ($1, $2) FOR UPDATE", ids["locked"], ids["taken and locked"])
	renew := func(want postgres.Renewal, renewed ...uuid.UUID) {
		t.Helper()
		var all []uuid.UUID
		for _, id := range ids {
			all = append(all, id)
		}
		got, err := s.store.RenewLeases(t.Context(), lease, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range [][]uuid.UUID{got.Lost, got.Locked, want.Lost, want.Locked, renewed} {
			slices.SortFunc(of, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, id := range ids {
			long := pgtest.LookUp[bool](t, s.store, "SELECT EXISTS (SELECT FROM webhooks WHERE id = $1 AND lease_until > now() + interval '30 minutes')", id)
			if long != slices.Contains(renewed, id) {
				t.Errorf("%s is renewed: %t", id, long)
			}
		}
	}
	lost := []uuid.UUID{ids["taken"], ids["taken and locked"], ids["deleted"]}
	renew(postgres.Renewal{Lost: lost, Locked: []uuid.UUID{ids["locked"]}}, ids["free"])
	unlock()
	renew(postgres.Renewal{Lost: lost}, ids["free"], ids["locked"])
}

// A lease is kept while something is due, and while its row is locked, as then deliveries may just be made.
func TestStore_ReleaseIdleLeases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	owner := s.account()
	lease := newLease()
	ids := map[string]uuid.UUID{}
	for _, name := range []string{"idle", "later", "due", "disabled and due", "locked", "taken and due"} {
		e, _ := s.endpoint(owner, "http://127.0.0.1/")
		ids[name] = e.ID
		if strings.Contains(name, "due") || name == "later" {
			if _, err := s.store.TestWebhook(t.Context(), owner, e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_holder = $1, lease_until = now() + interval '1 minute'", lease.Holder)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_holder = gen_random_uuid() WHERE id = $1", ids["taken and due"])
	pgtest.Exec(t, s.store, "UPDATE webhooks SET enabled = false, disabled_reason = 'owner' WHERE id = $1", ids["disabled and due"])
	pgtest.Exec(t, s.store, "UPDATE deliveries SET next_attempt_at = now() + interval '1 minute' WHERE webhook_id = $1", ids["later"])
	unlock := s.lock("SELECT FROM webhooks WHERE id = $1 FOR UPDATE", ids["locked"])
	release := func(wantKept ...string) {
		t.Helper()
		var all []uuid.UUID
		for _, id := range ids {
			all = append(all, id)
		}
		kept, err := s.store.ReleaseIdleLeases(t.Context(), lease, all)
		if err != nil {
			t.Fatal(err)
		}
		for name, id := range ids {
			if slices.Contains(kept, id) != slices.Contains(wantKept, name) {
				t.Errorf("the lease of the endpoint that is %s is kept: %t", name, slices.Contains(kept, id))
			}
			held := pgtest.LookUp[bool](t, s.store, "SELECT lease_until > now() FROM webhooks WHERE id = $1", id)
			if want := slices.Contains(wantKept, name) || name == "taken and due"; held != want {
				t.Errorf("the endpoint that is %s is leased: %t", name, held)
			}
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
	done, err := s.store.DispatchEvents(t.Context(), []uuid.UUID{owner.AccountID}, paused)
	if err != nil || len(done.Leased) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	claims := []postgres.Claim{{WebhookID: done.Leased[0].ID, Limit: 8}}
	held, err := s.store.DueDeliveries(t.Context(), paused, claims)
	if err != nil || len(held[e.ID].Deliveries) != 1 {
		t.Fatalf("%+v, %v", held, err)
	}
	if leased, err := s.store.LeaseDue(t.Context(), newLease(), postgres.LeaseRoom{Free: 10}, postgres.LeaseRoom{}); err != nil || len(leased) != 0 {
		t.Errorf("leased %v while another process holds the lease, %v", leased, err)
	}
	pgtest.Exec(t, s.store, "UPDATE webhooks SET lease_until = now() - interval '1 second'")
	s.start()
	asynctest.Eventually(t, "the other process delivers", func() bool { return s.deliveries(e)[0].Status == webhook.Delivered })
	want := s.deliveries(e)
	late := webhook.Attempt{Outcome: webhook.TimedOut, EndedAt: s.store.Now()}
	record := postgres.AttemptRecord{Endpoint: held[e.ID].Endpoint, Delivery: held[e.ID].Deliveries[0].Delivery, Attempt: late}
	if _, err := s.store.RecordAttempts(t.Context(), []postgres.AttemptRecord{record}, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.deliveries(e)); diff != "" {
		t.Errorf("the late outcome was recorded (-before +after):\n%s", diff)
	}
	if s.read(e).FailingSince != nil {
		t.Error("the endpoint is marked as failing")
	}
	if again, err := s.store.DueDeliveries(t.Context(), paused, claims); err != nil || len(again) != 0 {
		t.Errorf("the paused process may still send: %+v, %v", again, err)
	}
}
