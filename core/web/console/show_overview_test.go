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
	ann.get("/console").is(http.StatusOK, "You have no keys yet.", "Nothing at the moment.", "0 are done, 0 are open, and 0 ended otherwise", "No requests in the last hour.", "No transfer made in the last 30 days is done.")
	ann.makeKey("one")
	webhook, _ := ann.makeWebhook()
	ann.post(webhook + "/disable").leadsTo(webhook + "?done=webhook-disabled")
	owner := feed.Owner{AccountID: s.ann(t).ID, Environment: network.Test}
	for _, change := range []string{
		"", "status = 'expired'", "status = 'confirmed', hash = '0x' || repeat('a', 64)", "status = 'confirmed', hash = '0x' || repeat('b', 64), refundable_at = now()", "deadline = now() + interval '5 minutes'",
	} {
		intent := pgtest.InsertTransfer(t, s.store, s.known, owner.AccountID, pgtest.TransferBody)
		if change != "" {
			pgtest.Exec(t, s.store, "UPDATE transfers SET "+change+" WHERE id = $1", intent.ID)
		}
	}
	pgtest.Exec(t, s.store, `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
		SELECT account_id, $1, id, 7, 2, 1 FROM api_keys`, lastMinute())
	pgtest.Exec(t, s.store, `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
		SELECT account_id, $1, id, 1, 0, 0 FROM api_keys`, lastMinute().Add(-time.Minute))
	a := ann.get("/console").is(http.StatusOK, "2 are done, 2 are open, and 1 ended otherwise", "11 requests in the last hour: 8 accepted, 2 over the limit, 1 refused",
		"USDC Sepolia 0.00001 USDC 2",
		"Orders that expired unfilled and can be refunded", "Transfers that are not sent and expire within 15 minutes", "Webhooks that fail or are disabled", "https://example.com/hook")
	if strings.Contains(a.text(), "You have no keys yet.") || strings.Contains(a.text(), "Nothing at the moment.") {
		t.Errorf("the page does not see what there is: %s", a.text())
	}
	ben.get("/console").is(http.StatusOK, "Nothing at the moment.", "0 are done, 0 are open")
}

// Volumes are exact beyond 64 bits, leave out what is not done, simulated, older or of the other environment, and name a token that the registry does not have.
func TestShowOverview_Volumes(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	owner := feed.Owner{AccountID: s.ann(t).ID, Environment: network.Test}
	const done, most = "status = 'confirmed', hash = '0x' || repeat('a', 64)", "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	for _, change := range []string{
		done + ", source_amount = " + most + ", destination_amount = " + most,
		done + ", source_amount = " + most + ", destination_amount = " + most,
		done + ", source_token = '0x4444444444444444444444444444444444444444', destination_token = '0x4444444444444444444444444444444444444444'",
		"status = 'cancelled'",
		"status = 'confirmed', simulated = true",
		done + ", environment = 'live'",
		done + ", id = '018c251e-5c00-7000-8000-000000000000'",
	} {
		intent := pgtest.InsertTransfer(t, s.store, s.known, owner.AccountID, pgtest.TransferBody)
		pgtest.Exec(t, s.store, "UPDATE transfers SET "+change+" WHERE id = $1", intent.ID)
	}
	ann.get("/console").is(http.StatusOK, "Token Chain Sent Transfers"+
		" USDC Sepolia 231584178474632390847141970017375815706539969331281128078915168015826259.27987 USDC 2 0x444444…4444 Sepolia 5 units 1 Requests of all test keys")
}
