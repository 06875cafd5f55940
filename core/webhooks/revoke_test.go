package webhooks_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
)

// A request in flight is cut off when its endpoint is deleted or disabled, has another URL or secret, or when its account ends, and
// counts as no attempt. A rotation with a grace period cuts off nothing.
func TestDispatcher_Revokes(t *testing.T) {
	t.Parallel()
	s, elsewhere := newService(t), newInbox(t)
	s.timeout = time.Hour
	type receiver struct {
		*inbox
		*webhooks.Endpoint
		cut atomic.Bool
	}
	release := make(chan struct{})
	defer close(release)
	receivers := map[string]*receiver{}
	for _, name := range []string{"in grace", "described", "rotated", "moved", "disabled", "deleted", "of a disabled account"} {
		r := &receiver{inbox: newInbox(t)}
		r.answer(func(_ http.ResponseWriter, request *http.Request) {
			select {
			case <-release:
			case <-request.Context().Done():
				r.cut.Store(true)
			}
		})
		owner := s.Account()
		r.Endpoint, _ = s.Endpoint(owner, r.url)
		s.Enqueue(1, owner)
		receivers[name] = r
	}
	s.start()
	for name, r := range receivers {
		asynctest.Eventually(t, "a request is in flight: "+name, func() bool { return len(r.requests()) == 1 })
	}
	moved, rotated, disabled := receivers["moved"], receivers["rotated"], receivers["disabled"]
	s.Change(receivers["described"].Endpoint, webhooks.Change{Description: new("changed")})
	s.rotate(receivers["in grace"].Endpoint, time.Hour)
	rotated.answer(nil)
	secret := s.rotate(rotated.Endpoint, 0)
	s.Change(moved.Endpoint, webhooks.Change{URL: &elsewhere.url})
	s.Change(disabled.Endpoint, webhooks.Change{Enabled: new(false)})
	s.remove(receivers["deleted"].Endpoint)
	pgtest.Exec(t, s.Store, "UPDATE accounts SET disabled_at = now() WHERE id = $1", receivers["of a disabled account"].AccountID)
	for _, name := range []string{"rotated", "moved", "disabled", "deleted", "of a disabled account"} {
		asynctest.Eventually(t, "the request is cut off: "+name, receivers[name].cut.Load)
	}
	asynctest.Eventually(t, "the event goes to the new URL", func() bool { return len(elsewhere.requests()) == 1 })
	if got, want := elsewhere.requests()[0].id, moved.requests()[0].id; got != want {
		t.Errorf("%s goes to the new URL, want %s", got, want)
	}
	asynctest.Eventually(t, "the event is signed again", func() bool { return len(rotated.requests()) == 2 })
	if err := verify(t, secret, rotated.requests()[1]); err != nil {
		t.Errorf("the second request: %v", err)
	}
	if d := s.Deliveries(disabled.Endpoint); d[0].Status != webhooks.Pending || d[0].Attempts != 0 || s.Read(disabled.Endpoint).FailingSince != nil {
		t.Errorf("the cut-off request counts as an attempt: %+v", d[0])
	}
	for _, name := range []string{"in grace", "described"} {
		if r := receivers[name]; r.cut.Load() || len(r.requests()) != 1 {
			t.Errorf("the request of the endpoint %s is cut off", name)
		}
	}
}
