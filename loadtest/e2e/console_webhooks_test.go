package e2e_test

import (
	"fmt"
	"strings"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// walkWebhooks is the way of a webhook: made, tried, deleted.
func walkWebhooks(b *tab) {
	receiver := system.StartReceiver(b.t)
	b.signUp(uniqueEmail("webhooks"))
	b.open("/console/webhooks", "You have no test webhooks yet.")
	b.inspect("webhooks-none")
	b.fill("#url", receiver.URL+"/hook")
	b.click("main form button", "Your new webhook", receiver.URL, "shown this once")
	b.inspect("webhook-secret")
	b.click("main .actions a", "Nothing has been sent yet.")
	page := b.path()
	b.click(`form[action$="/test"] button`, "A test event is being sent.")
	asynctest.Succeeds(b.t, func() error {
		b.open(page)
		if shown := b.text(); !strings.Contains(shown, "delivered") || !strings.Contains(shown, "204 No Content") {
			return fmt.Errorf("%s says %q", page, shown)
		}
		return nil
	})
	b.inspect("webhook")
	b.click("tbody a", "Delivery of webhook.test", "204 No Content")
	b.inspect("delivery")
	b.open("/console", "Needs attention")
	b.inspect("overview")
	b.open("/console/webhooks", receiver.URL)
	b.inspect("webhooks")
	b.open(page)
	b.click("a.danger", "Delete this webhook?")
	b.inspect("delete-webhook")
	b.click("button.danger", "The webhook is deleted.", "You have no test webhooks yet.")
}
