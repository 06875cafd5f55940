package webhooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// A failed attempt is made again with the same id and body; Retry-After is the earliest time of the next.
func TestDispatcher_Repeats(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	c := s.start()
	in.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s.intent(owner)
	asynctest.Eventually(t, "the first attempt fails", func() bool { return len(s.Deliveries(e)) == 1 && s.Deliveries(e)[0].Attempts == 1 })
	d := s.Deliveries(e)[0]
	if d.Status != webhooks.Retrying || d.ResponseStatus != 503 || d.Error == "" || d.NextAttemptAt.Sub(d.UpdatedAt) != time.Hour {
		t.Errorf("%+v", d)
	}
	asynctest.Eventually(t, "the endpoint is marked as failing", func() bool { return s.Read(e).FailingSince != nil })
	in.answer(nil)
	pgtest.Exec(t, s.Store, "UPDATE deliveries SET next_attempt_at = now()")
	asynctest.Eventually(t, "the second attempt succeeds", func() bool { return s.Deliveries(e)[0].Status == webhooks.Delivered })
	got := in.requests()
	if len(got) != 2 || got[0].id != got[1].id || got[0].body != got[1].body {
		t.Errorf("%+v", got)
	}
	asynctest.Eventually(t, "the endpoint is well", func() bool { return s.Read(e).FailingSince == nil })
	attempts := metricstest.Of(t, c.metrics, "intents_core_webhook_attempts_total")
	if failed, sent := attempts["status"], attempts["delivered"]; failed != 1 || sent != 1 {
		t.Errorf("%v failed and %v delivered attempts are counted", failed, sent)
	}
}

// 410 disables an endpoint at once, and several failures do over five days. The account's other endpoints hear of it. What happens meanwhile
// arrives after enabling.
func TestDispatcher_Disables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		since  string
		reason webhooks.Reason
	}{
		"gone":    {http.StatusGone, "", webhooks.DisabledGone},
		"failing": {http.StatusInternalServerError, "120 hours", webhooks.DisabledFailing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, bad, good := newService(t), newInbox(t), newInbox(t)
			owner := s.Account()
			e, _ := s.Endpoint(owner, bad.url)
			s.Endpoint(owner, good.url, "webhook.disabled")
			if c.since != "" {
				pgtest.Exec(t, s.Store, "UPDATE webhooks SET failures = 4, failing_since = now() - $1::interval WHERE id = $2", c.since, e.ID)
			}
			bad.answer(status(c.status))
			process := s.start()
			s.intent(owner)
			asynctest.Eventually(t, "the other endpoint hears of it", func() bool { return len(good.requests()) == 1 })
			if got := s.Read(e); got.Enabled || got.DisabledReason != c.reason {
				t.Errorf("%+v", got)
			}
			want := fmt.Sprintf(`"data":{"id":%q,"url":%q,"reason":%q}`, e.ID, bad.url, c.reason)
			if got := good.requests()[0].body; !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
			asynctest.Eventually(t, "it is counted", func() bool {
				return metricstest.Values(t, process.metrics)["intents_core_webhook_disabled_total "+string(c.reason)] == 1
			})
			bad.answer(nil)
			before := len(bad.requests())
			s.intent(owner)
			s.Change(e, webhooks.Change{Enabled: new(true)})
			asynctest.Eventually(t, "what happened meanwhile arrives", func() bool { return len(bad.requests()) >= before+2 })
		})
	}
}

// The tenth attempt is the last.
func TestDispatcher_LastAttempt(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	in.answer(status(500))
	s.start()
	s.intent(owner)
	asynctest.Eventually(t, "the first attempt is recorded", func() bool { return len(s.Deliveries(e)) == 1 && s.Deliveries(e)[0].Attempts == 1 })
	pgtest.Exec(t, s.Store, "UPDATE deliveries SET attempts = $1, next_attempt_at = now()", webhooks.MaxAttempts-1)
	asynctest.Eventually(t, "the delivery has failed", func() bool { return s.Deliveries(e)[0].Status == webhooks.Failed })
	if got := s.Deliveries(e)[0]; got.Attempts != webhooks.MaxAttempts || got.NextAttemptAt != nil || len(in.requests()) != 2 {
		t.Errorf("%+v after %d requests", got, len(in.requests()))
	}
}

// A replay and a retry send the same ids again.
func TestDispatcher_ReplayAndRetry(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	c := s.start()
	for range 3 {
		s.intent(owner)
	}
	asynctest.Eventually(t, "all arrive", func() bool { return len(in.requests()) == 3 })
	once := in.ids()
	if err := s.Store.Webhooks.ReplayWebhook(t.Context(), access.OfOperator, owner, e.ID, 0, pgtest.AuditEntry(owner.AccountID, account.WebhookReplayed)); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "all arrive again", func() bool { return len(in.requests()) == 6 })
	want := slices.Sorted(slices.Values(append(slices.Clone(once), once...)))
	if diff := cmp.Diff(want, in.ids()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asynctest.Eventually(t, "all are recorded", func() bool {
		return !slices.ContainsFunc(s.Deliveries(e), func(d webhooks.Delivery) bool { return d.Status != webhooks.Delivered })
	})
	one := s.Deliveries(e)[1]
	if err := s.Store.Webhooks.RetryDelivery(t.Context(), access.OfOperator, owner, e.ID, one.EventID); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "one arrives again", func() bool { return len(in.requests()) == 7 })
	if got := in.requests()[6].id; got != one.EventID.String() {
		t.Errorf("%s, want %s", got, one.EventID)
	}
	if n := metricstest.Values(t, c.metrics)["intents_core_webhook_first_attempt_seconds count"]; n != 3 {
		t.Errorf("%v first attempts are observed, want 3", n)
	}
}
