package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
)

func (b *tab) createWebhook(url string) (page string) {
	b.t.Helper()
	b.open("/console/webhooks")
	b.fill("#url", url)
	b.click("main form button", "Your new webhook", url, "shown this once")
	if secret := b.of("#secret"); !strings.HasPrefix(secret, "whsec_") {
		b.t.Errorf("the secret is %q", secret)
	}
	return evaluate[string](b, `new URL(document.querySelector("main .actions a").href).pathname`)
}

// awaitDelivery reloads a webhook's page until it says all of these.
func (b *tab) awaitDelivery(page string, texts ...string) {
	b.t.Helper()
	eventually(b.t, func() error {
		b.open(page)
		shown := b.text()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Errorf("%s does not say %q:\n%s", page, text, shown)
			}
		}
		return nil
	})
}

// walkWebhooks is the way of a webhook: made, tried, failing, repaired, disabled, deleted.
func walkWebhooks(b *tab) {
	t := b.t
	receiver := startRecorder(t)
	b.signUp(uniqueEmail("webhooks"))
	key := b.makeKey("Webhooks")
	b.open("/console/webhooks", "You have no webhooks yet.")
	b.inspect("webhooks-none")
	b.fill("#url", "https://10.0.0.1/hook")
	b.clickRefused("main form button", http.StatusUnprocessableEntity, "The URL must lead to a public address")
	b.inspect("webhooks-fault")

	page := b.createWebhook(receiver.URL + "/hook")
	b.inspect("webhook-secret")
	b.click("main .actions a", "Nothing was sent yet.")
	b.click(`form[action$="/test"] button`, "A test event is being sent.")
	b.awaitDelivery(page, "webhook.test", "delivered", "204 No Content")

	t.Log("an event of an intent, refused by the receiver, then sent again")
	receiver.status.Store(http.StatusInternalServerError)
	pay(t, apiClient(t, b.base, key), 1)
	b.awaitDelivery(page, "transfer.created", "pending", "500 Internal Server Error", "Failing since")
	b.inspect("webhook")
	receiver.status.Store(http.StatusNoContent)
	b.click(`tbody tr:first-child form button`, "The event is being sent again.")
	b.awaitDelivery(page+"?status=delivered", "transfer.created", "204 No Content")

	t.Log("disabled, deleted")
	b.open(page)
	b.click(`form[action$="/disable"] button`, "The webhook is disabled.", "Disabled")
	b.open("/console/webhooks", "Disabled", receiver.URL)
	b.inspect("webhooks")
	b.open(page)
	b.click("a.danger", "Delete this webhook?")
	b.inspect("delete-webhook")
	b.click("button.danger", "The webhook is deleted.", "You have no webhooks yet.")
	b.open("/console/audit", "Webhook created", "Webhook changed", "Webhook deleted")
}
