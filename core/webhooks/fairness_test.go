package webhooks_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
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

// slowAccounts makes twelve accounts with so many endpoints each, which have more due than a process can have in flight.
func (s *service) slowAccounts(url string, endpoints int) (owners []feed.Owner) {
	s.Helper()
	for range 12 {
		owner := s.Account()
		first, _ := s.Endpoint(owner, url)
		for range endpoints - 1 {
			id := uuid.New()
			pgtest.Exec(s.T, s.Store, `INSERT INTO webhooks SELECT made.* FROM webhooks AS w,
				jsonb_populate_record(w, jsonb_build_object('id', $2::text, 'secret', $3::text)) AS made WHERE w.id = $1`, first.ID, id.String(), pgBytes(s.Rules.Sealer.Seal(id, webhooks.NewSecret())))
		}
		owners = append(owners, owner)
	}
	s.Enqueue(8, owners...)
	return owners
}

// Twelve accounts with twenty endpoints each that hang do not delay a stranger's: its first attempt is made while all of theirs hang.
func TestDispatcher_SlowAccounts(t *testing.T) {
	t.Parallel()
	s, slow, live := newService(t), newInbox(t), newInbox(t)
	s.timeout = time.Hour
	hanging, release := slow.hang()
	defer release()
	s.slowAccounts(slow.url, webhooks.MaxEndpoints)
	stranger := s.Account()
	s.Endpoint(stranger, live.url)
	c := s.start()
	asynctest.Eventually(t, "the slow accounts have their shares", func() bool { return hanging() >= 180 })
	s.intent(stranger)
	asynctest.Eventually(t, "the stranger's event arrives", func() bool { return len(live.requests()) == 1 })
	if ended := metricstest.Values(t, c.metrics)["intents_core_webhook_attempts_total timeout"]; ended != 0 {
		t.Errorf("%v slow attempts have ended, so nothing is shown", ended)
	}
	s.Enqueue(1, stranger) // what is due already waits for no other either
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
	owners := s.slowAccounts(dead.url, webhooks.MaxEndpoints-1)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET failing_since = now(), failures = 1, last_failed_at = now()")
	s.start()
	asynctest.Eventually(t, "the dead endpoints have their slots", func() bool { return hanging() >= 40 })
	stranger := s.Account()
	back, _ := s.Endpoint(stranger, recovered.url)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET failing_since = now(), failures = 1, last_failed_at = now() WHERE id = $1", back.ID)
	s.Endpoint(owners[0], live.url)
	s.intent(owners[0])
	asynctest.Eventually(t, "an endpoint of the same account that works has its event", func() bool { return len(live.requests()) == 1 })
	s.Enqueue(20, stranger)
	asynctest.Eventually(t, "the endpoint that has recovered has all", func() bool { return len(recovered.requests()) == 20 })
}
