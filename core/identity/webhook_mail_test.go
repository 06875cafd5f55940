package identity_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/network"
)

// The owners of an account are told that a webhook was disabled, with a link to it and without its URL, unless it is enabled again.
func TestComposeMail_WebhookDisabled(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	ann := signedIn(t, core.Service, "ann@example.com")
	shop := ann.shares("Shop <x.y>")
	sealer, err := webhook.NewSealer(make([]byte, 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := &webhook.Rules{Networks: outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), Sealer: sealer}
	entry, err := account.NewAuditEntry(shop, account.Actor{}, account.WebhookCreated, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := rules.New(event.Owner{AccountID: shop, Environment: network.Test}, webhook.Draft{URL: "http://127.0.0.1/secret-path"}, core.Store.Now())
	if err == nil {
		err = core.Store.InsertWebhook(t.Context(), e, entry, [32]byte{})
	}
	if err == nil {
		_, err = core.Store.TestWebhook(t.Context(), e.Owner(), e.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := core.Store.Deliveries(t.Context(), e.Owner(), e.ID, webhook.DeliveryQuery{Limit: 1})
	if err != nil || len(deliveries) != 1 {
		t.Fatalf("%+v, %v", deliveries, err)
	}
	gone := webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: http.StatusGone, EndedAt: core.Store.Now()}
	record := postgres.AttemptRecord{Endpoint: e, Delivery: deliveries[0], Attempt: gone}
	if recorded, err := core.Store.RecordAttempts(t.Context(), []postgres.AttemptRecord{record}, true); err != nil || len(recorded.Disabled) != 1 {
		t.Fatalf("%+v, %v", recorded, err)
	}
	core.MailQueued()
	mailed := <-core.mails
	if diff := cmp.Diff([]string{"ann@example.com"}, mailed.To); diff != "" {
		t.Errorf("mailed to (-want +got):\n%s", diff)
	}
	if link := mailed.Link(); !strings.HasSuffix(link, "/console/webhooks/"+e.ID.String()) {
		t.Errorf("the link is %q", link)
	}
	for _, text := range []string{"410 Gone", "Shop x y"} {
		if !strings.Contains(string(mailed.Data), text) {
			t.Errorf("the mail does not say %q:\n%s", text, mailed.Data)
		}
	}
	for _, never := range []string{"secret-path", "x.y"} {
		if strings.Contains(string(mailed.Data), never) {
			t.Errorf("the mail has %q:\n%s", never, mailed.Data)
		}
	}
	queued := &postgres.QueuedMail{Mail: postgres.Mail{
		Kind: account.MailWebhookDisabled, Recipient: "ann@example.com", AccountID: shop, WebhookID: e.ID,
	}}
	compose := func(why string, want bool) {
		t.Helper()
		if message, err := core.ComposeMail(t.Context(), queued); err != nil || (message != nil) != want {
			t.Errorf("%s: %+v, %v", why, message, err)
		}
	}
	compose("to an owner", true)
	queued.Recipient = "eve@example.com"
	compose("to another person", false)
	queued.Recipient = "ann@example.com"
	if entry, err = account.NewAuditEntry(shop, account.Actor{}, account.WebhookUpdated, time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = core.Store.ChangeWebhook(t.Context(), e.Owner(), e.ID, entry, func(e *webhook.Endpoint) (string, error) {
		return rules.Change(e, webhook.Change{Enabled: new(true)}, core.Store.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	compose("after it was enabled", false)
	queued.WebhookID = uuid.New()
	compose("after it was deleted", false)
}
