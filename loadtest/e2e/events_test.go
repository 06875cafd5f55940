package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// eventPage is an answer of GET /v2/events.
type eventPage struct {
	Events []json.RawMessage
	Next   string
}

// feedEvent has what these tests read of an event.
type feedEvent struct {
	ID, Type, Environment string
	Sequence              int
	Data                  struct{ ID, From, To string }
}

func readEvent(t *testing.T, text []byte) (e feedEvent) {
	t.Helper()
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return e
}

// mustRead fails the test unless the feed has the events of these new intents after the cursor, in this order, and no others. It returns
// the cursor after them. On a busy machine an event may come with a later page than the first after it was committed.
func mustRead(c *client, after string, intents ...string) (next string) {
	c.t.Helper()
	var read []string
	for deadline := time.Now().Add(time.Minute); ; {
		query := url.Values{"limit": {"7"}}
		if after != "" {
			query.Set("after", after)
		}
		page := expect[eventPage](c.t, c.do(http.MethodGet, "/v2/events?"+query.Encode(), nil), http.StatusOK)
		for _, text := range page.Events {
			read = append(read, readEvent(c.t, text).Data.ID)
		}
		after = page.Next
		if complete := len(read) >= len(intents); len(page.Events) == 0 && (complete || time.Now().After(deadline)) {
			break
		}
	}
	if diff := cmp.Diff(intents, read); diff != "" {
		c.t.Errorf("events after the cursor (-want +got):\n%s", diff)
	}
	return after
}

// endpoint is a webhook as it is answered when it is made.
type endpoint struct{ ID, URL, Secret string }

func createWebhook(t *testing.T, c *client, target string) endpoint {
	t.Helper()
	made := expect[endpoint](t, c.do(http.MethodPost, "/v2/webhooks", map[string]any{"url": target}), http.StatusCreated)
	if made.URL != target || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("the webhook for %s is %+v", target, made)
	}
	return made
}

// delivered are requests to a webhook of the test's own, as they came.
type delivered struct {
	mu       sync.Mutex
	requests map[string][]delivery // by webhook-id
}

type delivery struct {
	header http.Header
	body   []byte
}

func (d *delivered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := r.Header.Get("Webhook-Id")
	d.requests[id] = append(d.requests[id], delivery{r.Header, body})
	w.WriteHeader(http.StatusNoContent)
}

// await returns the deliveries of an event once there are so many.
func (d *delivered) await(t *testing.T, id string, count int) (got []delivery) {
	t.Helper()
	eventually(t, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if got = d.requests[id]; len(got) != count {
			return fmt.Errorf("%s was delivered %d times, want %d", id, len(got), count)
		}
		return nil
	})
	return got
}

// sentDelivery is a line of a webhook's log.
type sentDelivery struct {
	EventID, Status          string
	Attempts, ResponseStatus int
}

// awaitDeliveries fails the test unless the webhook's log has these events, the newest first, each delivered at the first attempt.
func awaitDeliveries(t *testing.T, c *client, webhookID string, events ...string) {
	t.Helper()
	var want []sentDelivery
	for _, id := range events {
		want = append(want, sentDelivery{id, "delivered", 1, http.StatusNoContent})
	}
	eventually(t, func() error {
		log := expect[struct{ Deliveries []sentDelivery }](t, c.do(http.MethodGet, "/v2/webhooks/"+webhookID+"/deliveries", nil), http.StatusOK)
		if diff := cmp.Diff(want, log.Deliveries); diff != "" {
			return fmt.Errorf("deliveries (-want +got):\n%s", diff)
		}
		return nil
	})
}

// verify returns an error unless the delivery verifies with the secret, by the library of the specification.
func (d delivery) verify(secret string) error {
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return webhook.Verify(d.body, d.header)
}

// longPoll reads the feed after a cursor as soon as something is there, with the first events and when they came.
func longPoll(t *testing.T, c *client, after string) <-chan struct {
	eventPage
	at time.Time
} {
	t.Helper()
	polled := make(chan struct {
		eventPage
		at time.Time
	}, 1)
	patient := *c
	patient.http = &http.Client{Timeout: 40 * time.Second, Transport: c.http.Transport}
	go func() {
		defer close(polled)
		a, err := patient.try(http.MethodGet, "/v2/events?wait=25&after="+url.QueryEscape(after), nil)
		if err != nil || a.Status != http.StatusOK {
			t.Errorf("the long poll ends with %d %s, %v", a.Status, a.Body, err)
			return
		}
		var page eventPage
		if err := json.Unmarshal(a.Body, &page); err != nil {
			t.Error(err)
			return
		}
		polled <- struct {
			eventPage
			at time.Time
		}{page, time.Now()}
	}()
	return polled
}

// An intent is heard of by a long poll, by the receivers of both languages and by a webhook that records what is sent, all the same
// event; and after its secret is replaced both secrets verify.
func TestWebhooks_EndToEnd(t *testing.T) {
	t.Parallel()
	key := freshKey(t)
	me := apiClient(t, key)
	recorded := &delivered{requests: map[string][]delivery{}}
	server := httptest.NewServer(recorded)
	t.Cleanup(server.Close)
	recorder := createWebhook(t, me, server.URL+"/hook")
	receivers, endpoints := map[string]*receiver{}, map[string]endpoint{}
	for language := range receiverLanguages {
		receivers[language] = newReceiver(t, language, running.Env().GatewayURL, key)
		endpoints[language] = createWebhook(t, me, receivers[language].url)
		receivers[language].start(t, endpoints[language].Secret)
	}
	start := expect[eventPage](t, me.do(http.MethodGet, "/v2/events?after=now", nil), http.StatusOK)

	polled := longPoll(t, me, start.Next)
	made := expect[record](t, me.do(http.MethodPost, "/v2/transfers", body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), "", "")), http.StatusCreated)
	answered := time.Now()
	page := <-polled
	if len(page.Events) != 1 {
		t.Fatalf("the long poll has %q", page.Events)
	}
	t.Logf("the long poll ended %s after the intent was answered", page.at.Sub(answered).Round(time.Millisecond))
	created := readEvent(t, page.Events[0])
	want := feedEvent{ID: created.ID, Type: "transfer.created", Environment: "test", Sequence: 1}
	want.Data.ID, want.Data.To = made.ID, "created"
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("the event (-want +got):\n%s", diff)
	}
	sent := recorded.await(t, created.ID, 1)[0]
	sent.mustConform(t)
	if err := sent.verify(recorder.Secret); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(string(page.Events[0]), fmt.Sprintf(`{"id":%q,%s`, created.ID, sent.body[1:])); diff != "" {
		t.Errorf("the event in the feed and as it was sent (-feed +sent):\n%s", diff)
	}
	for _, r := range receivers {
		r.awaitHandled(t, created.ID+" transfer.created")
	}

	// Every endpoint gets another secret. The old one still verifies, and receivers with the new one take over.
	fresh := map[string]string{}
	rotate := func(id string) string {
		return expect[endpoint](t, me.do(http.MethodPost, "/v2/webhooks/"+id+"/rotate-secret", map[string]any{}), http.StatusOK).Secret
	}
	fresh["recorder"] = rotate(recorder.ID)
	for language, made := range endpoints {
		fresh[language] = rotate(made.ID)
	}
	expect[record](t, me.do(http.MethodPost, "/v2/transfers/"+made.ID+"/cancel", nil), http.StatusOK)
	page.eventPage = expect[eventPage](t, me.do(http.MethodGet, "/v2/events?after="+url.QueryEscape(page.Next), nil), http.StatusOK)
	if len(page.Events) != 1 {
		t.Fatalf("the feed has %q", page.Events)
	}
	cancelled := readEvent(t, page.Events[0])
	sent = recorded.await(t, cancelled.ID, 1)[0]
	sent.mustConform(t)
	if err := errors.Join(sent.verify(recorder.Secret), sent.verify(fresh["recorder"])); err != nil {
		t.Errorf("with the old and the new secret: %v", err)
	}
	awaitDeliveries(t, me, recorder.ID, cancelled.ID, created.ID)
	for language, r := range receivers {
		r.awaitHandled(t, created.ID+" transfer.created", cancelled.ID+" transfer.cancelled")
		r.stop()
		r.start(t, fresh[language]) // it reads the feed from the beginning, as it has nothing stored
		r.awaitHandled(t, created.ID+" transfer.created", cancelled.ID+" transfer.cancelled", created.ID+" transfer.created", cancelled.ID+" transfer.cancelled")
	}
	expect[record](t, me.do(http.MethodPost, "/v2/transfers", body(on(11155111, alice), on(11155111, usdc), "2", on(11155111, bob), "", "")), http.StatusCreated)
	page.eventPage = expect[eventPage](t, me.do(http.MethodGet, "/v2/events?after="+url.QueryEscape(page.Next), nil), http.StatusOK)
	second := readEvent(t, page.Events[0])
	for _, r := range receivers {
		eventually(t, func() error {
			if lines := r.handled(); lines[len(lines)-1] != second.ID+" transfer.created" {
				return fmt.Errorf("handled %q, and not %s", lines, second.ID)
			}
			return nil
		})
	}
}
