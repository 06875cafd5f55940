package e2e_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/client/webhook"
	"intents.internal/pkg/testkit/asynctest"
)

// mustRead fails the test unless the feed has the events of these new intents after the cursor, in this order, and no others. It returns
// the cursor after them. On a busy machine an event may come with a later page than the first after it was committed.
func mustRead(t *testing.T, api *intents.Client, after string, ids ...string) (next string) {
	t.Helper()
	var read []string
	for deadline := time.Now().Add(time.Minute); ; {
		page := must(api.Events.List(t.Context(), intents.EventQuery{After: after, Limit: 7}))(t)
		for _, event := range page.Events {
			read = append(read, event.Transfer.ID)
		}
		after = page.Next
		if complete := len(read) >= len(ids); len(page.Events) == 0 && (complete || time.Now().After(deadline)) {
			break
		}
	}
	if diff := cmp.Diff(ids, read); diff != "" {
		t.Errorf("events after the cursor (-want +got):\n%s", diff)
	}
	return after
}

// nextEvents reads the feed after a cursor as soon as something is there.
func nextEvents(t *testing.T, api *intents.Client, after string) *intents.EventPage {
	t.Helper()
	page := must(api.Events.List(t.Context(), intents.EventQuery{After: after, Wait: 25 * time.Second}))(t)
	if len(page.Events) == 0 {
		t.Fatal("no event came within 25 seconds")
	}
	return page
}

func createWebhook(t *testing.T, api *intents.Client, target string) *intents.CreatedWebhook {
	t.Helper()
	made := must(api.Webhooks.Create(t.Context(), intents.CreateWebhook{URL: target}))(t)
	if made.URL != target || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("the webhook for %s is %+v", target, made)
	}
	return made
}

// awaitDeliveries returns the deliveries of an event once there are so many.
func awaitDeliveries(t *testing.T, r *system.Receiver, id string, count int) (got []system.Delivery) {
	t.Helper()
	asynctest.Succeeds(t, func() error {
		if got = r.Deliveries(id); len(got) != count {
			return fmt.Errorf("%s was delivered %d times, want %d", id, len(got), count)
		}
		return nil
	})
	return got
}

// mustVerify fails the test unless the delivery verifies with the secret, by the library of the specification and by the Go client, and has
// this event.
func mustVerify(t *testing.T, d system.Delivery, secret string, want intents.Event) {
	t.Helper()
	got := must(webhook.Verify(d.Body, d.Header, secret))(t)
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("the event in the feed and as it was sent (-feed +sent):\n%s", diff)
	}
	if err := must(standardwebhooks.NewWebhook(secret))(t).Verify(d.Body, d.Header); err != nil {
		t.Error(err)
	}
}

// An intent is heard of by a long poll, by a webhook that records what is sent, and by the receivers of both languages, all the same event.
// After its secret is replaced both secrets verify. The receivers refuse what was not signed, handle every event once, read the feed for
// those that were not delivered, and begin it again where their cursor is too old.
func TestWebhooks(t *testing.T) {
	journey(t)
	t.Parallel()
	owner := newPerson(t, shared.Stack.Env().GatewayURL)
	key := owner.newKey().Key
	me := apiClient(t, shared.Stack.Env().GatewayURL, key)
	recorded := system.StartReceiver(t)
	endpoints := map[string]*intents.CreatedWebhook{"recorder": createWebhook(t, me, recorded.URL+"/hook")}
	receivers := map[string]*receiver{}
	for language := range buildReceiver {
		receivers[language] = newReceiver(t, language, key)
		endpoints[language] = createWebhook(t, me, receivers[language].url)
		receivers[language].restart(t, endpoints[language].Secret)
	}
	cursor := must(me.Events.List(t.Context(), intents.EventQuery{After: intents.Now}))(t).Next

	polled := make(chan *intents.EventPage, 1)
	go func() { defer close(polled); polled <- nextEvents(t, me, cursor) }()
	made := pay(t, me, 1)[0]
	page := <-polled
	created := page.Events[0]
	if e := created; e.Type != intents.TransferCreated || e.Environment != intents.Test || *e.Sequence != 1 ||
		e.Transfer.ID != made || e.Transfer.From != nil || e.Transfer.To != intents.StatusCreated {
		t.Errorf("the event of %s: %+v %+v", made, e, e.Transfer)
	}
	sent := awaitDeliveries(t, recorded, created.ID, 1)[0]
	mustConform(t, sent)
	mustVerify(t, sent, endpoints["recorder"].Secret, created)
	handled := []string{created.ID + " transfer.created"}
	for _, r := range receivers {
		r.awaitHandled(t, handled...)
	}

	t.Log("another secret: the old one still verifies, and receivers with the new one take over")
	fresh := map[string]string{}
	for name, made := range endpoints {
		fresh[name] = must(me.Webhooks.RotateSecret(t.Context(), made.ID, intents.RotateWebhookSecret{}))(t).Secret
	}
	cancel := func(id string) intents.Event {
		t.Helper()
		must(me.Transfers.Cancel(t.Context(), id))(t)
		page = nextEvents(t, me, page.Next)
		return page.Events[len(page.Events)-1]
	}
	cancelled := cancel(made)
	sent = awaitDeliveries(t, recorded, cancelled.ID, 1)[0]
	mustConform(t, sent)
	mustVerify(t, sent, endpoints["recorder"].Secret, cancelled)
	mustVerify(t, sent, fresh["recorder"], cancelled)
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
			update := intents.UpdateWebhook{Types: intents.SetTo([]string{"transfer.cancelled"})}
			must(me.Webhooks.Update(t.Context(), endpoints[language].ID, update))(t)
		}
		made = pay(t, me, 1)[0]
		page = nextEvents(t, me, page.Next)
		created = page.Events[0]
		if what == "and a cursor that is too old" {
			system.Execute(t, shared.Stack.Env().DatabaseURL, `INSERT INTO feed_pruned (account_id, environment, position)
				SELECT account_id, 'test', max(position) FROM feed WHERE account_id = (SELECT id FROM accounts WHERE email = $1) GROUP BY account_id`, owner.email)
		}
		cancelled = cancel(made)
		handled = append(handled, cancelled.ID+" transfer.cancelled", created.ID+" transfer.created late")
		for _, r := range receivers {
			r.awaitHandled(t, handled...)
		}
	}
	for language, r := range receivers {
		r.mustRefuse(t, awaitDeliveries(t, recorded, cancelled.ID, 1)[0], fresh[language])
		r.awaitHandled(t, handled...)
	}
}

// signed is the delivery as its sender would sign it at another time with another secret.
func signed(t *testing.T, d system.Delivery, secret string, at time.Time) system.Delivery {
	t.Helper()
	signature := must(must(standardwebhooks.NewWebhook(secret))(t).Sign(d.Header.Get("Webhook-Id"), at, d.Body))(t)
	d.Header = d.Header.Clone()
	d.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	d.Header.Set("Webhook-Signature", signature)
	return d
}
