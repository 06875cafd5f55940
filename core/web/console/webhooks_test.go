package console_test

import (
	"net/http"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
)

// makeWebhook makes a test webhook in the console and returns the path of its page and its secret.
func (b *browser) makeWebhook(fields ...string) (page, secret string) {
	b.t.Helper()
	const url = "https://example.com/hook"
	formToken := b.get("/console/webhooks").field("formToken")
	made := b.post("/console/webhooks", append([]string{"url", url, "environment", "test", "formToken", formToken}, fields...)...)
	made.is(http.StatusOK, "Your new webhook", "shown this once", url)
	return made.link("/console/webhooks/"), made.element("secret")
}

// The way of a webhook, from the empty list to the audit log.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	ann.get("/console/webhooks").is(http.StatusOK, "You have no test webhooks yet.", "0 of 20, test and live", "transfer.confirmed")

	page, secret := ann.makeWebhook("type:transfer.confirmed", "1", "type:transfer.failed", "1", "description", `<b>ops</b>`)
	if !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret: %q", secret)
	}
	for _, path := range []string{"/console/webhooks", page, "/console/audit"} {
		if a := ann.get(path).is(http.StatusOK, "https://example.com/hook"); strings.Contains(a.body, secret) || strings.Contains(a.body, "<b>ops") {
			t.Errorf("%s shows the secret or an unescaped description", path)
		}
	}
	ann.get(page).is(http.StatusOK, "Enabled", "transfer.confirmed transfer.failed", "<b>ops</b>", "Nothing has been sent yet.")

	t.Log("a test event, and what became of it")
	ann.post(page + "/test").leadsTo(page + "?done=webhook-tested")
	listed := ann.get(page+"?done=webhook-tested").is(http.StatusOK, "A test event is being sent.", "webhook.test", "pending")
	ann.post(page+"/test", "type", "transfer.filled").leadsTo(page + "?done=webhook-tested")
	ann.get(page).is(http.StatusOK, "transfer.filled", "webhook.test")
	ann.post(page+"/test", "type", "transfer.done").is(http.StatusBadRequest).tied("type", "Type is not one of the choices.")
	pgtest.Exec(t, s.store, `DELETE FROM deliveries WHERE type = 'transfer.filled'`)
	ann.get(page+"?status=failed").is(http.StatusOK, "No deliveries match these filters.")
	ann.get(page+"?status=lost").is(http.StatusBadRequest, "There is no such status.")
	pgtest.Exec(t, s.store, `UPDATE webhooks SET failing_since = now()`)
	pgtest.Exec(t, s.store, `UPDATE deliveries SET attempts = 1, response_status = 500`)
	ann.get(page).is(http.StatusOK, "Failing since", "retrying 1 500 Internal Server Error")
	ann.get(page+"?status=retrying").is(http.StatusOK, "500 Internal Server Error")
	ann.get(page+"?status=pending").is(http.StatusOK, "No deliveries match these filters.")
	ann.post(page+"/retry", "event", listed.field("event")).leadsTo(page + "?done=webhook-retried")
	ann.post(page+"/retry", "event", "evt_00000000-0000-4000-8000-000000000000").is(http.StatusNotFound, "no delivery of this event")
	ann.post(page+"/replay", "since", "3600").leadsTo(page + "?done=webhook-replayed")
	ann.post(page+"/replay", "since", "1").is(http.StatusBadRequest, "is not one of the choices")

	t.Log("rotate, change, disable, enable")
	rotated := ann.post(page+"/rotate", "gracePeriod", "3600").is(http.StatusOK, "The secret was rotated", "the old secret also signs until")
	if next := rotated.element("secret"); next == secret || !strings.HasPrefix(next, "whsec_") {
		t.Errorf("the new secret: %q", next)
	}
	ann.get(page).is(http.StatusOK, "The old secret signs until")
	ann.post(page+"/rotate", "gracePeriod", "604801").is(http.StatusBadRequest, "must be 0 to 604800 seconds")
	ann.post(page+"/change", "url", "https://example.com/other", "description", "").leadsTo(page + "?done=webhook-changed")
	ann.get(page).is(http.StatusOK, "https://example.com/other", "Events All")
	ann.post(page+"/change", "url", "https://example.com/other", "type:transfer.*", "1").leadsTo(page + "?done=webhook-changed")
	ann.get(page).is(http.StatusOK, "Events transfer.* Description")
	ann.post(page+"/change", "url", "https://127.0.0.1/").is(http.StatusUnprocessableEntity, "The URL must lead to a public address")
	ann.post(page+"/change", "url", "https://example.com/other", "type:transfer.lost", "1").is(http.StatusBadRequest)
	ann.post(page + "/disable").leadsTo(page + "?done=webhook-disabled")
	ann.get(page).is(http.StatusOK, "Disabled", "It was disabled in the console or through the API.")
	ann.post(page+"/test").is(http.StatusConflict, "The webhook is disabled.")
	ann.post(page + "/enable").leadsTo(page + "?done=webhook-enabled")

	t.Log("delete")
	ann.get(page+"/delete").is(http.StatusOK, "Delete this webhook?", "https://example.com/other")
	ann.post(page + "/delete").leadsTo("/console/webhooks?done=webhook-deleted")
	ann.get(page).is(http.StatusNotFound, "Your account has no webhook with this id.")
	ann.get("/console/audit").is(http.StatusOK, "Webhook created", "Webhook changed", "Webhook secret rotated", "Webhook replayed", "Webhook deleted")
}

// A delivery's page shows what was sent and what came back, which is text of others.
func TestShowDelivery(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	webhook, _ := ann.makeWebhook()
	ann.post(webhook + "/test").leadsTo(webhook + "?done=webhook-tested")
	page := ann.get(webhook).link(webhook + "/deliveries/")
	ann.get(page).is(http.StatusOK, "Delivery of webhook.test", "pending", "POST https://example.com/hook", `"type": "webhook.test"`, "Nothing has been sent yet.")
	pgtest.Exec(t, s.store, `UPDATE deliveries SET attempts = 1`)
	ann.get(page).is(http.StatusOK, "retrying", "The attempts are no longer stored")
	pgtest.Exec(t, s.store, `INSERT INTO delivery_attempts (webhook_id, event_id, ended_at, duration_ms, response_status, error, response_body)
		SELECT webhook_id, event_id, now() - n * interval '1 minute', 1840, 500, '<i>no</i>',
		CASE n WHEN 1 THEN '<script>alert(1)</script>' ELSE '' END FROM deliveries, generate_series(1, 2) AS n`)
	a := ann.get(page).is(http.StatusOK, "500 Internal Server Error. <i>no</i> after 1.8 s", "<script>alert(1)</script>", "The answer has no body.")
	if strings.Contains(a.body, "<i>") || strings.Contains(a.body, "<script>alert") {
		t.Error("the page shows text of others as HTML")
	}
	ben.get(page).is(http.StatusNotFound, "no webhook with this id")
	ann.get(webhook+"/deliveries/evt_1").is(http.StatusNotFound, "no delivery of this event")
}

// Reloading the answer of a form leads to its page, and no page of another account's webhook is shown or changed.
func TestWebhooks_Others(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	page, _ := ann.makeWebhook()
	ann.get(page + "/rotate").leadsTo(page)
	for _, path := range []string{"", "/delete"} {
		ben.get(page+path).is(http.StatusNotFound, "no webhook with this id")
	}
	for _, path := range []string{"/change", "/enable", "/disable", "/test", "/delete"} {
		ben.post(page+path).is(http.StatusNotFound, "no webhook with this id")
	}
	ben.post(page+"/rotate", "gracePeriod", "0").is(http.StatusNotFound, "no webhook with this id")
	ben.post(page+"/replay", "since", "3600").is(http.StatusNotFound, "no webhook with this id")
	ben.get("/console/webhooks").is(http.StatusOK, "You have no test webhooks yet.")
	ann.get("/console/webhooks/nothing").is(http.StatusNotFound, "no webhook with this id")
}

// A form with a fault comes back with what was typed.
func TestWebhooks_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	for name, c := range map[string]struct {
		fields []string
		status int
		says   string
	}{
		"no URL":         {[]string{"url", "", "environment", "test"}, http.StatusBadRequest, "The URL"},
		"no environment": {[]string{"url", "https://example.com/", "environment", "staging"}, http.StatusBadRequest, "Environment"},
	} {
		a := ann.post("/console/webhooks", c.fields...).is(c.status, c.says, "Create a webhook")
		if typed := a.field("url"); typed != c.fields[1] {
			t.Errorf("%s: the form has the URL %q", name, typed)
		}
	}
}

// A form that is sent twice makes one webhook, and one with a fault has not been used up.
func TestCreateWebhook_SentTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	formToken := ann.get("/console/webhooks").field("formToken")
	form := []string{"url", "https://example.com/hook", "environment", "test", "description", "", "formToken", formToken}
	ann.post("/console/webhooks", "url", "", "environment", "test", "formToken", formToken).is(http.StatusBadRequest, "The URL")
	ann.post("/console/webhooks", form...).is(http.StatusOK, "Your new webhook")
	ann.post("/console/webhooks", form...).is(http.StatusConflict, "This form was sent already", "1 of 20").alerts("rotate it")
	ben.post("/console/webhooks", form...).is(http.StatusOK, "Your new webhook") // the token is of ann's session
	ann.post("/console/webhooks", append(form[:6:6], "formToken", "short")...).is(http.StatusBadRequest, "Not this page's form")
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM webhooks"); n != 2 {
		t.Errorf("%d webhooks, want one of each account", n)
	}
}
