package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
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

// verify returns an error unless the delivery verifies with the secret, by the library of the specification.
func (d delivery) verify(secret string) error {
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return webhook.Verify(d.body, d.header)
}

// nextEvents reads the feed after a cursor as soon as something is there.
func nextEvents(c *client, after string) eventPage {
	c.t.Helper()
	page := expect[eventPage](c.t, c.do(http.MethodGet, "/v2/events?wait=25&after="+url.QueryEscape(after), nil), http.StatusOK)
	if len(page.Events) == 0 {
		c.t.Fatal("no event came within 25 seconds")
	}
	return page
}

// An intent is heard of by a long poll, by a webhook that records what is sent, and by the receivers of both languages, all the same event.
// After its secret is replaced both secrets verify. The receivers refuse what was not signed, handle every event once, read the feed for
// those that were not delivered, and begin it again where their cursor is too old.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	owner := newPerson(t, running.Env().GatewayURL)
	key := owner.newKey().Key
	me := apiClient(t, key)
	recorded := &delivered{requests: map[string][]delivery{}}
	server := httptest.NewServer(recorded)
	t.Cleanup(server.Close)
	endpoints := map[string]endpoint{"recorder": createWebhook(t, me, server.URL+"/hook")}
	receivers := map[string]*receiver{}
	for language := range buildReceiver {
		receivers[language] = newReceiver(t, language, key)
		endpoints[language] = createWebhook(t, me, receivers[language].url)
		receivers[language].restart(t, endpoints[language].Secret)
	}
	cursor := expect[eventPage](t, me.do(http.MethodGet, "/v2/events?after=now", nil), http.StatusOK).Next

	polled := make(chan eventPage, 1)
	go func() { defer close(polled); polled <- nextEvents(me, cursor) }()
	made := pay(me, 1)[0]
	page := <-polled
	created := readEvent(t, page.Events[0])
	want := feedEvent{ID: created.ID, Type: "transfer.created", Environment: "test", Sequence: 1}
	want.Data.ID, want.Data.To = made, "created"
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("the event (-want +got):\n%s", diff)
	}
	sent := recorded.await(t, created.ID, 1)[0]
	sent.mustConform(t)
	if err := sent.verify(endpoints["recorder"].Secret); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(string(page.Events[0]), fmt.Sprintf(`{"id":%q,%s`, created.ID, sent.body[1:])); diff != "" {
		t.Errorf("the event in the feed and as it was sent (-feed +sent):\n%s", diff)
	}
	handled := []string{created.ID + " transfer.created"}
	for _, r := range receivers {
		r.awaitHandled(t, handled...)
	}

	t.Log("another secret: the old one still verifies, and receivers with the new one take over")
	fresh := map[string]string{}
	for name, made := range endpoints {
		fresh[name] = expect[endpoint](t, me.do(http.MethodPost, "/v2/webhooks/"+made.ID+"/rotate-secret", map[string]any{}), http.StatusOK).Secret
	}
	cancel := func(id string) feedEvent {
		t.Helper()
		expect[record](t, me.do(http.MethodPost, "/v2/transfers/"+id+"/cancel", nil), http.StatusOK)
		page = nextEvents(me, page.Next)
		return readEvent(t, page.Events[len(page.Events)-1])
	}
	cancelled := cancel(made)
	sent = recorded.await(t, cancelled.ID, 1)[0]
	sent.mustConform(t)
	if err := errors.Join(sent.verify(endpoints["recorder"].Secret), sent.verify(fresh["recorder"])); err != nil {
		t.Errorf("with the old and the new secret: %v", err)
	}
	handled = append(handled, cancelled.ID+" transfer.cancelled")
	for language, r := range receivers {
		r.awaitHandled(t, handled...)
		r.restart(t, fresh[language]) // it reads the feed from the beginning, as it has nothing stored
		r.awaitHandled(t, append(handled, handled...)...)
	}
	handled = append(handled, handled...)

	for _, what := range []string{"an event that is only in the feed", "and a cursor that is too old"} {
		t.Log(what)
		for language := range receivers {
			a := me.do(http.MethodPatch, "/v2/webhooks/"+endpoints[language].ID, map[string]any{"types": []string{"transfer.cancelled"}})
			expect[any](t, a, http.StatusOK)
		}
		made = pay(me, 1)[0]
		page = nextEvents(me, page.Next)
		created = readEvent(t, page.Events[0])
		if what == "and a cursor that is too old" {
			execute(t, running.Env().DatabaseURL, `INSERT INTO feed_pruned (account_id, environment, position)
				SELECT account_id, 'test', max(position) FROM feed WHERE account_id = (SELECT id FROM accounts WHERE email = $1) GROUP BY account_id`, owner.email)
		}
		cancelled = cancel(made)
		handled = append(handled, cancelled.ID+" transfer.cancelled", created.ID+" transfer.created late")
		for _, r := range receivers {
			r.awaitHandled(t, handled...)
		}
	}
	for language, r := range receivers {
		r.mustRefuse(t, recorded.await(t, cancelled.ID, 1)[0], fresh[language])
		r.awaitHandled(t, handled...)
	}
}

// signed is the delivery as its sender would sign it at another time with another secret.
func (d delivery) signed(t *testing.T, secret string, at time.Time) delivery {
	t.Helper()
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := webhook.Sign(d.header.Get("Webhook-Id"), at, d.body)
	if err != nil {
		t.Fatal(err)
	}
	d.header = d.header.Clone()
	d.header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	d.header.Set("Webhook-Signature", signature)
	return d
}
