package webhooks_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
)

// A delivery has its attempts, the newest first, with what was sent and what the receiver answered.
func TestDelivery(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	s.start()
	in.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("no database"))
	})
	intent := s.intent(owner)
	asynctest.Eventually(t, "the first attempt fails", func() bool { return len(s.Deliveries(e)) == 1 && s.Deliveries(e)[0].Attempts == 1 })
	in.answer(nil)
	pgtest.Exec(t, s.Store, "UPDATE deliveries SET next_attempt_at = now()")
	asynctest.Eventually(t, "the second attempt succeeds", func() bool { return s.Deliveries(e)[0].Status == webhooks.Delivered })

	listed := s.Deliveries(e)[0]
	d, of, err := s.Store.Webhooks.Delivery(t.Context(), owner, e.ID, listed.EventID)
	if err != nil {
		t.Fatal(err)
	}
	want := []webhooks.PastAttempt{
		{ResponseStatus: 204, ResponseBody: new("")},
		{ResponseStatus: 500, ResponseBody: new("no database"), Error: webhooks.OtherStatus.Text()},
	}
	if diff := cmp.Diff(want, d.Past, cmpopts.IgnoreFields(webhooks.PastAttempt{}, "EndedAt", "Duration")); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if !d.Past[0].EndedAt.Equal(listed.UpdatedAt) || d.Past[1].Duration < 0 || d.Past[1].Duration > time.Minute {
		t.Errorf("%+v, changed at %s", d.Past, listed.UpdatedAt)
	}
	if diff := cmp.Diff(listed, d.Delivery); diff != "" || of.ID != e.ID {
		t.Errorf("of webhook %s (-want +got):\n%s", of.ID, diff)
	}
	if body, err := d.Event.Body(); err != nil || string(body) != in.requests()[0].body || d.Event.Transfer.Summary.ID != intent.ID {
		t.Errorf("the event of intent %s: %s, %v", d.Event.Transfer.Summary.ID, body, err)
	}
	of1, urls, err := s.Store.Webhooks.DeliveriesOfIntent(t.Context(), owner, intent.ID)
	if diff := cmp.Diff([]webhooks.Delivery{listed}, of1); err != nil || diff != "" || urls[e.ID] != in.url {
		t.Errorf("%v, %v, of the intent (-want +got):\n%s", err, urls, diff)
	}
	if others, _, err := s.Store.Webhooks.DeliveriesOfIntent(t.Context(), owner, uuid.New()); err != nil || others != nil {
		t.Errorf("of another intent: %+v, %v", others, err)
	}
	pgtest.Exec(t, s.Store, "DELETE FROM feed")
	if d, _, err := s.Store.Webhooks.Delivery(t.Context(), owner, e.ID, listed.EventID); err != nil || d.Event != nil {
		t.Errorf("without the event: %+v, %v", d, err)
	}
	if _, _, err := s.Store.Webhooks.Delivery(t.Context(), owner, e.ID, feed.ID{}); !errors.Is(err, webhooks.ErrDeliveryNotFound) {
		t.Errorf("another event: %v", err)
	}
	if _, _, err := s.Store.Webhooks.Delivery(t.Context(), s.Account(), e.ID, listed.EventID); !errors.Is(err, webhooks.ErrNotFound) {
		t.Errorf("another account: %v", err)
	}
}

// An event that is no longer kept ends its delivery without an attempt.
func TestDelivery_EventGone(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, "https://example.com/")
	s.Enqueue(1, owner)
	records, _ := s.attempted(map[*webhooks.Endpoint]webhooks.Attempt{e: {Outcome: webhooks.EventGone}})
	if _, err := s.Store.Webhooks.RecordAttempts(t.Context(), records, false); err != nil {
		t.Fatal(err)
	}
	d, _, err := s.Store.Webhooks.Delivery(t.Context(), owner, e.ID, records[0].Delivery.EventID)
	if err != nil || d.Status != webhooks.Failed || d.Past != nil || d.Event == nil {
		t.Errorf("%+v, %v", d, err)
	}
}

// The body of an answer is kept as far as its bound, as text that Postgres and a page take.
func TestClient_Send_Body(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 4096)
	for name, c := range map[string]struct{ answer, want string }{
		"no body":        {"HTTP/1.1 204 No Content\r\n\r\n", ""},
		"a success":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
		"a long success": {"HTTP/1.1 200 OK\r\n\r\n" + long, long[:512]},
		"a long failure": {"HTTP/1.1 500 No\r\n\r\n" + long, long[:4096]},
		"a cut letter":   {"HTTP/1.1 500 No\r\n\r\nx" + long, "x" + long[:4094]},
		"not UTF-8":      {"HTTP/1.1 500 No\r\n\r\na\xff\x00b", "a\uFFFD\uFFFDb"},
		"a cut answer":   {"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nno dat", "no dat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newClient(t).Send(t.Context(), webhooks.Message{URL: listen(t, raw(c.answer)), ID: "evt_1", Body: []byte(`{}`)})
			if a.ResponseBody != c.want || a.Duration <= 0 {
				t.Errorf("%d bytes %.40q after %s, want %d bytes", len(a.ResponseBody), a.ResponseBody, a.Duration, len(c.want))
			}
		})
	}
}
