package webhooks_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
)

// After the key of the secrets was lost, a rotation has the endpoint work at once, also with a grace for the secret that is lost.
func TestDispatcher_LostKey(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	sealer, err := webhooks.NewSealer([]byte("another key that has 32 bytes.. "), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Rules = &webhooks.Rules{Networks: onlyReceiver(), Sealer: sealer}
	secret := s.rotate(e, time.Hour)
	s.start()
	s.intent(owner)
	asynctest.Eventually(t, "the event arrives", func() bool { return len(in.requests()) == 1 })
	if err := verify(t, secret, in.requests()[0]); err != nil {
		t.Error(err)
	}
}

// A process that was paused past its lease records nothing wrong: another one has made the attempt meanwhile.
func TestDispatcher_LateRecord(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	s.intent(owner)
	s.assignPositions()
	paused := newLease()
	done, err := s.Store.Webhooks.DispatchEvents(t.Context(), []uuid.UUID{owner.AccountID}, paused)
	if err != nil || len(done.Leased) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	claims := []webhooks.Claim{{WebhookID: done.Leased[0].ID, Limit: 8}}
	held, err := s.Store.Webhooks.DueDeliveries(t.Context(), paused, claims)
	if err != nil || len(held[e.ID].Deliveries) != 1 {
		t.Fatalf("%+v, %v", held, err)
	}
	if leased, err := s.Store.Webhooks.LeaseDue(t.Context(), newLease(), webhooks.LeaseRoom{Free: 10}, webhooks.LeaseRoom{}); err != nil || len(leased) != 0 {
		t.Errorf("leased %v while another process holds the lease, %v", leased, err)
	}
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET lease_until = now() - interval '1 second'")
	s.start()
	asynctest.Eventually(t, "the other process delivers", func() bool { return s.Deliveries(e)[0].Status == webhooks.Delivered })
	want := s.Deliveries(e)
	late := webhooks.Attempt{Outcome: webhooks.TimedOut, EndedAt: s.Store.Now()}
	record := webhooks.AttemptRecord{Endpoint: held[e.ID].Endpoint, Delivery: held[e.ID].Deliveries[0].Delivery, Attempt: late}
	if _, err := s.Store.Webhooks.RecordAttempts(t.Context(), []webhooks.AttemptRecord{record}, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Deliveries(e)); diff != "" {
		t.Errorf("the late outcome was recorded (-before +after):\n%s", diff)
	}
	if s.Read(e).FailingSince != nil {
		t.Error("the endpoint is marked as failing")
	}
	if again, err := s.Store.Webhooks.DueDeliveries(t.Context(), paused, claims); err != nil || len(again) != 0 {
		t.Errorf("the paused process may still send: %+v, %v", again, err)
	}
}
