package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/network"
)

// The first page shows what happens in the account, and what needs a hand.
func TestShowOverview(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	ann.get("/console").is(http.StatusOK, "You have no keys yet.", "Nothing at the moment.", "0 are done, 0 are open, and 0 ended otherwise", "No requests in the last hour.")
	ann.makeKey("one")
	webhook, _ := ann.makeWebhook()
	ann.post(webhook + "/disable").leadsTo(webhook + "?done=webhook-disabled")
	owner := feed.Owner{AccountID: s.ann(t).ID, Environment: network.Test}
	for _, change := range []string{
		"", "status = 'expired'", "status = 'confirmed', hash = '0x' || repeat('a', 64)", "status = 'confirmed', hash = '0x' || repeat('b', 64), refundable_at = now()", "deadline = now() + interval '5 minutes'",
	} {
		intent := pgtest.InsertIntent(t, s.store, s.known, owner)
		if change != "" {
			pgtest.Exec(t, s.store, "UPDATE transfers SET "+change+" WHERE id = $1", intent.ID)
		}
	}
	pgtest.Exec(t, s.store, `INSERT INTO key_usage SELECT account_id, $1, id, 7, 2, 1 FROM api_keys`, lastMinute())
	pgtest.Exec(t, s.store, `INSERT INTO key_usage SELECT account_id, $1, id, 1, 0, 0 FROM api_keys`, lastMinute().Add(-time.Minute))
	a := ann.get("/console").is(http.StatusOK, "2 are done, 2 are open, and 1 ended otherwise", "11 requests in the last hour: 8 accepted, 2 over the limit, 1 refused",
		"Orders that nobody filled", "Transfers that expire within 15 minutes", "Webhooks that fail or are disabled", "https://example.com/hook")
	if strings.Contains(a.text(), "You have no keys yet.") || strings.Contains(a.text(), "Nothing at the moment.") {
		t.Errorf("the page does not see what there is: %s", a.text())
	}
	ben.get("/console").is(http.StatusOK, "Nothing at the moment.", "0 are done, 0 are open")
}
