package webhooks_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// An event is posted as the feed has it, signed as Standard Webhooks says.
func TestDispatcher_Delivers(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	s.intent(owner) // before the endpoint, which does not hear it
	e, secret := s.Endpoint(owner, in.url)
	c := s.start()
	intent := s.intent(owner)
	asynctest.Eventually(t, "the event arrives and is recorded", func() bool {
		d := s.Deliveries(e)
		return len(d) == 1 && d[0].Status == webhooks.Delivered
	})
	got := in.requests()
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	if err := verify(t, secret, got[0]); err != nil {
		t.Error(err)
	}
	page, err := s.Store.Feed.EventPage(t.Context(), owner, 0, feed.Filter{}, 10)
	if err != nil || len(page.Events) != 2 {
		t.Fatalf("%d events, %v", len(page.Events), err)
	}
	body, err := page.Events[1].Body()
	if err != nil {
		t.Fatal(err)
	}
	if got[0].id != page.Events[1].ID.String() || got[0].body != string(body) || !strings.Contains(got[0].body, intent.ID.String()) {
		t.Errorf("got %+v\nwant %s %s", got[0], page.Events[1].ID, body)
	}
	want := webhooks.Delivery{
		WebhookID: e.ID, EventID: page.Events[1].ID, Position: page.Events[1].Position, Type: "transfer.created", Status: webhooks.Delivered,
		Attempts: 1, ResponseStatus: 204,
	}
	d := s.Deliveries(e)[0]
	d.CreatedAt, d.UpdatedAt = time.Time{}, time.Time{}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := metricstest.Values(t, c.metrics)["intents_core_webhook_first_attempt_seconds count"]; n != 1 {
		t.Errorf("%v first attempts are observed", n)
	}
}

// The event of an intent that a quote made is posted as the feed has it too, with the quote's amounts.
func TestDispatcher_DeliversQuoted(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	s.Endpoint(owner, in.url)
	s.start()
	q := pgtest.InsertQuote(t, s.Store, s.Known, owner.AccountID)
	intent := pgtest.NewQuotedIntent(t, s.Known, q)
	pgtest.Must(t, s.Store.Quotes.Use(t.Context(), access.OfOperator, intent, ""))
	asynctest.Eventually(t, "the event arrives", func() bool { return len(in.requests()) == 1 })
	inFeed, _ := pgtest.ReadFeed(t, s.Store, owner, 0)
	if len(inFeed) != 1 {
		t.Fatalf("the feed has %v", pgtest.Steps(inFeed))
	}
	body, err := inFeed[0].Body()
	if got := in.requests()[0]; err != nil || got.id != inFeed[0].ID.String() || got.body != string(body) {
		t.Errorf("%v; got %+v\nwant %s %s", err, got, inFeed[0].ID, body)
	}
	if told := inFeed[0].Transfer.Summary; told.ID != intent.ID || told.OrderID != intent.OrderID ||
		told.Source.Amount != q.Source.Amount.String() || told.Destination.Amount != q.Destination.Amount.String() {
		t.Errorf("the event tells of %+v, the quote was %+v", told, q)
	}
}

// Two processes share the endpoints: each event is delivered once to each.
func TestDispatcher_TwoProcesses(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	const accounts, events = 10, 20
	var owners []feed.Owner
	for range accounts {
		owner := s.Account()
		s.Endpoint(owner, in.url)
		owners = append(owners, owner)
	}
	s.start()
	s.start()
	var writing sync.WaitGroup
	for _, owner := range owners {
		writing.Go(func() {
			for range events {
				s.intent(owner)
			}
		})
	}
	writing.Wait()
	asynctest.Eventually(t, "everything is delivered", func() bool {
		return pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM deliveries WHERE status = 'delivered'") == accounts*events
	})
	ids := in.ids()
	if len(ids) != accounts*events || len(slices.Compact(ids)) != accounts*events {
		t.Errorf("%d requests, %d of them different; want %d", len(in.requests()), len(slices.Compact(ids)), accounts*events)
	}
	if held := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM deliveries WHERE attempts <> 1"); held != 0 {
		t.Errorf("%d deliveries have another number of attempts than 1", held)
	}
}

// An endpoint hears what its filter lets through; a test comes whatever the filter is, and is not in the feed.
func TestDispatcher_Filter(t *testing.T) {
	t.Parallel()
	s, all, some := newService(t), newInbox(t), newInbox(t)
	owner := s.Account()
	s.Endpoint(owner, all.url)
	e, _ := s.Endpoint(owner, some.url, "transfer.failed", "webhook.*")
	s.start()
	s.intent(owner)
	if _, err := s.Store.Webhooks.TestWebhook(t.Context(), access.OfOperator, owner, e.ID, feed.TypeWebhookTest); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "both have one request", func() bool { return len(all.requests()) == 1 && len(some.requests()) == 1 })
	if got := some.requests()[0].body; !strings.Contains(got, `"type":"webhook.test"`) || !strings.Contains(got, `"sequence":null`) {
		t.Errorf("%s", got)
	}
	if got := all.requests()[0].body; !strings.Contains(got, `"type":"transfer.created"`) {
		t.Errorf("%s", got)
	}
}

// A sample of each type comes whatever the filter is, the same in each attempt, and is not in the feed.
func TestDispatcher_Samples(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url, "webhook.disabled")
	s.start()
	want := map[string]bool{}
	for _, kind := range webhooks.TestTypes() {
		id, err := s.Store.Webhooks.TestWebhook(t.Context(), access.OfOperator, owner, e.ID, kind)
		pgtest.Must(t, err)
		details, _, err := s.Store.Webhooks.Delivery(t.Context(), owner, e.ID, id)
		pgtest.Must(t, err)
		body, err := details.Event.Body()
		pgtest.Must(t, err)
		want[id.String()+" "+string(body)] = strings.Contains(string(body), `"type":"`+string(kind)+`"`)
	}
	asynctest.Eventually(t, "all arrive", func() bool { return len(in.requests()) == len(want) })
	for _, got := range in.requests() {
		if !want[got.id+" "+got.body] {
			t.Errorf("%s was sent %s", got.id, got.body)
		}
	}
	if events, _ := pgtest.ReadFeed(t, s.Store, owner, 0); len(events) != 0 {
		t.Errorf("the feed has %v", pgtest.Steps(events))
	}
}

// Both secrets sign until the grace of a rotation ends; a third rotation ends the oldest.
func TestDispatcher_Rotation(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, first := s.Endpoint(owner, in.url)
	second := s.rotate(e, time.Hour)
	s.start()
	signedBy := func(n int) (signed []bool) {
		t.Helper()
		s.intent(owner)
		asynctest.Eventually(t, "the event arrives", func() bool { return len(in.requests()) == n })
		for _, secret := range []string{first, second} {
			signed = append(signed, verify(t, secret, in.requests()[n-1]) == nil)
		}
		return signed
	}
	if got := signedBy(1); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("during the grace: %v", got)
	}
	third := s.rotate(e, time.Hour)
	if got := signedBy(2); !slices.Equal(got, []bool{false, true}) || verify(t, third, in.requests()[1]) != nil {
		t.Errorf("after the third: %v", got)
	}
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET previous_until = now() - interval '1 second'")
	if got := signedBy(3); !slices.Equal(got, []bool{false, false}) || verify(t, third, in.requests()[2]) != nil {
		t.Errorf("after the grace: %v", got)
	}
}

// Deleted endpoints, disabled accounts and ended ones get nothing.
func TestDispatcher_DeletedAndDisabled(t *testing.T) {
	t.Parallel()
	s, silent, heard := newService(t), newInbox(t), newInbox(t)
	disabled, ended, other := s.Account(), s.Account(), s.Account()
	s.Endpoint(disabled, silent.url)
	s.Endpoint(ended, silent.url)
	gone, _ := s.Endpoint(other, silent.url)
	off, _ := s.Endpoint(other, silent.url)
	s.Endpoint(other, heard.url)
	pgtest.Exec(t, s.Store, "UPDATE accounts SET disabled_at = now() WHERE id = $1", disabled.AccountID)
	pgtest.Exec(t, s.Store, "UPDATE accounts SET deleted_at = now() WHERE id = $1", ended.AccountID)
	s.remove(gone)
	s.Change(off, webhooks.Change{Enabled: new(false)})
	s.start()
	for _, owner := range []feed.Owner{disabled, ended, other} {
		s.intent(owner)
	}
	asynctest.Eventually(t, "the one endpoint hears", func() bool { return len(heard.requests()) == 1 })
	pgtest.Exec(t, s.Store, "UPDATE accounts SET disabled_at = NULL WHERE id = $1", disabled.AccountID)
	asynctest.Eventually(t, "the account that is enabled again hears", func() bool { return len(silent.requests()) == 1 })
}

// An endpoint has at most eight attempts in flight. A process that stops finishes them, records them and gives its leases back.
func TestDispatcher_Drain(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, in.url)
	arrived, release := make(chan struct{}, 9), make(chan struct{})
	in.answer(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-release })
	c := s.start()
	for range 8 { // as many as an endpoint may have in flight
		s.intent(owner)
		<-arrived
	}
	s.intent(owner)
	asynctest.Eventually(t, "the delivery that waits is made", func() bool { return len(s.Deliveries(e)) == 9 })
	if n := len(in.requests()); n != 8 {
		t.Errorf("%d requests to one endpoint at once, want 8", n)
	}
	c.cancel()
	close(release)
	c.stop()
	count := map[webhooks.Status]int{}
	for _, d := range s.Deliveries(e) {
		count[d.Status]++
	}
	if count[webhooks.Delivered] < 8 || count[webhooks.Delivered]+count[webhooks.Pending] != 9 {
		t.Errorf("%v: at least 8 are delivered, and the other is for the next process", count)
	}
	for _, table := range []string{"webhooks", "leases"} {
		if held := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM "+table+" WHERE lease_until > now()"); held != 0 {
			t.Errorf("%d leases of %s are held", held, table)
		}
	}
}
