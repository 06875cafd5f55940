package webhooks_test

import (
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// The metrics are those of the backlog, while a delivery cannot be sent and after it was.
func TestDispatcher_BacklogMetric(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	s.Enqueue(1, owner)
	pgtest.Exec(t, s.Store, "UPDATE deliveries SET next_attempt_at = now() - interval '2 hours'")
	release := s.Lock("SELECT FROM webhooks FOR NO KEY UPDATE")
	c := s.start()
	for _, metric := range []string{"intents_core_webhook_unattended_seconds", "intents_core_webhook_backlog_age_seconds"} {
		asynctest.Eventually(t, "the metric tells of it", func() bool { return metricstest.Values(t, c.metrics)[metric] > 0 })
		if age := metricstest.Values(t, c.metrics)[metric]; age < 7200 || age > 7260 {
			t.Errorf("%s is %v, want two hours", metric, age)
		}
	}
	release()
	asynctest.Eventually(t, "the event arrives", func() bool { return s.Deliveries(e)[0].Status == webhooks.Delivered })
	if backlog := s.Backlog(); backlog != (webhooks.Backlog{}) {
		t.Errorf("after that: %+v", backlog)
	}
}
