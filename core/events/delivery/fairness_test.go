package delivery_test

import (
	"net/http"
	"slices"
	"sync/atomic"
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

// hang has a receiver answer nothing until release. hanging is how many requests hang.
func (in *inbox) hang() (hanging func() int32, release func()) {
	var count atomic.Int32
	released := make(chan struct{})
	in.answer(func(_ http.ResponseWriter, r *http.Request) {
		count.Add(1)
		select {
		case <-released:
		case <-r.Context().Done():
		}
	})
	return count.Load, func() { close(released) }
}

// enqueue makes due deliveries of test events to all endpoints of accounts.
func (s *service) enqueue(each int, owners ...event.Owner) {
	s.Helper()
	for _, owner := range owners {
		pgtest.Exec(s.T, s.store, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, next_attempt_at, created_at, updated_at)
			SELECT id, gen_random_uuid(), n, 'webhook.test', 'pending', 0, now(), now(), now() FROM webhooks, generate_series(1, $2) AS n WHERE account_id = $1`,
			owner.AccountID, each)
	}
}

// slowAccounts makes twelve accounts with so many endpoints each, which have more due than a process can have in flight.
func (s *service) slowAccounts(url string, endpoints int) (owners []event.Owner) {
	s.Helper()
	for range 12 {
		owner := s.account()
		first, _ := s.endpoint(owner, url)
		for range endpoints - 1 {
			id := uuid.New()
			pgtest.Exec(s.T, s.store, `INSERT INTO webhooks SELECT (jsonb_populate_record(w, jsonb_build_object('id', $2::text, 'secret', $3::text))).*
				FROM webhooks AS w WHERE id = $1`, first.ID, id.String(), pgBytes(s.rules.Sealer.Seal(id, webhook.NewSecret())))
		}
		owners = append(owners, owner)
	}
	s.enqueue(8, owners...)
	return owners
}

// Twelve accounts with twenty endpoints each that hang do not delay a stranger's: its first attempt is made while all of theirs hang.
func TestDispatcher_SlowAccounts(t *testing.T) {
	t.Parallel()
	s, slow, live := newService(t), newInbox(t), newInbox(t)
	s.timeout = time.Hour
	hanging, release := slow.hang()
	defer release()
	s.slowAccounts(slow.url, webhook.MaxEndpoints)
	stranger := s.account()
	s.endpoint(stranger, live.url)
	c := s.start()
	asynctest.Eventually(t, "the slow accounts have their shares", func() bool { return hanging() >= 180 })
	s.intent(stranger)
	asynctest.Eventually(t, "the stranger's event arrives", func() bool { return len(live.requests()) == 1 })
	if ended := c.count(t, "intents_core_webhook_attempts_total", "timeout"); ended != 0 {
		t.Errorf("%v slow attempts have ended, so nothing is shown", ended)
	}
	s.enqueue(1, stranger) // what is due already waits for no other either
	asynctest.Eventually(t, "the stranger's due delivery arrives", func() bool { return len(live.requests()) == 2 })
}

// Endpoints that have failed are attempted apart: as many as hang, those of the same account that work get all at once, and so does
// another account's endpoint that has recovered.
func TestDispatcher_FailingEndpoints(t *testing.T) {
	t.Parallel()
	s, dead, live, recovered := newService(t), newInbox(t), newInbox(t), newInbox(t)
	s.timeout = time.Hour
	hanging, release := dead.hang()
	defer release()
	owners := s.slowAccounts(dead.url, webhook.MaxEndpoints-1)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET failing_since = now(), failures = 1, last_failed_at = now()")
	s.start()
	asynctest.Eventually(t, "the dead endpoints have their slots", func() bool { return hanging() >= 40 })
	stranger := s.account()
	back, _ := s.endpoint(stranger, recovered.url)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET failing_since = now(), failures = 1, last_failed_at = now() WHERE id = $1", back.ID)
	s.endpoint(owners[0], live.url)
	s.intent(owners[0])
	asynctest.Eventually(t, "an endpoint of the same account that works has its event", func() bool { return len(live.requests()) == 1 })
	s.enqueue(20, stranger)
	asynctest.Eventually(t, "the endpoint that has recovered has all", func() bool { return len(recovered.requests()) == 20 })
}

// Every account gets a lease before another gets its second, failing endpoints apart from the others.
func TestStore_LeaseDue_Fair(t *testing.T) {
	t.Parallel()
	s := newService(t)
	hog, small := s.account(), s.account()
	for range 6 {
		s.endpoint(hog, "http://127.0.0.1/")
	}
	var hogFailing []uuid.UUID
	for range 3 {
		e, _ := s.endpoint(hog, "http://127.0.0.1/")
		hogFailing = append(hogFailing, e.ID)
		pgtest.Exec(t, s.store, "UPDATE webhooks SET failing_since = now() - interval '1 day', last_failed_at = now() - $2::int * interval '1 hour' WHERE id = $1",
			e.ID, len(hogFailing))
	}
	s.endpoint(small, "http://127.0.0.1/")
	s.enqueue(1, hog)
	pgtest.Exec(t, s.store, "UPDATE deliveries SET next_attempt_at = now() - interval '3 hours'")
	s.enqueue(1, small)
	lease := newLease()
	for round, c := range []struct {
		room events.LeaseRoom
		want map[string]int
	}{
		{events.LeaseRoom{Free: 2}, map[string]int{"hog": 1, "small": 1, "hog failing": 1}},
		{events.LeaseRoom{Free: 50}, map[string]int{}},                                      // reserved for others
		{events.LeaseRoom{Free: 50, Shared: 8}, map[string]int{"hog": 1, "hog failing": 1}}, // a quarter
		{events.LeaseRoom{Free: 3, Shared: 40}, map[string]int{"hog": 3, "hog failing": 1}},
	} {
		leased, err := s.store.Events.LeaseDue(t.Context(), lease, c.room, c.room)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, one := range leased {
			switch {
			case one.AccountID == small.AccountID:
				got["small"]++
			case one.Failing:
				got["hog failing"]++
				if oldest := hogFailing[len(hogFailing)-1]; round == 0 && one.ID != oldest {
					t.Errorf("%s is attempted before %s, which has waited longer", one.ID, oldest)
				}
			default:
				got["hog"]++
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

// Only what can be sent is loaded: the limit of a claim bounds it, and what is in flight is left out.
func TestStore_DueDeliveries_Claims(t *testing.T) {
	t.Parallel()
	s := newService(t)
	owner := s.account()
	e, _ := s.endpoint(owner, "http://127.0.0.1/")
	s.enqueue(5, owner)
	lease := newLease()
	if leased, err := s.store.Events.LeaseDue(t.Context(), lease, events.LeaseRoom{Free: 1}, events.LeaseRoom{}); err != nil || len(leased) != 1 {
		t.Fatalf("%+v, %v", leased, err)
	}
	var sent []event.ID
	for _, want := range []int{2, 2, 1, 0} {
		due, err := s.store.Events.DueDeliveries(t.Context(), lease, []events.Claim{{WebhookID: e.ID, Limit: 2, InFlight: sent}})
		if err != nil || len(due[e.ID].Deliveries) != want {
			t.Fatalf("%+v, %v; want %d", due[e.ID].Deliveries, err, want)
		}
		for _, d := range due[e.ID].Deliveries {
			if slices.Contains(sent, d.EventID) {
				t.Errorf("%s is loaded twice", d.EventID)
			}
			sent = append(sent, d.EventID)
		}
	}
}
