package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/web/webtest"
	"intents.internal/core/webhooks"
)

// The tests of this file call every route once with success and compare whole bodies with the examples.

func TestEveryRoute_Registry(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := webtest.Keyed(uuid.New(), "test")
	s.Example(t, "of one chain", "GET", "/v2/tokens?chain-id=eip155:84532", "", key...)
	s.Example(t, "chains", "GET", "/v2/chains", "", key...)
	s.Example(t, "days", "GET", "/v2/usage?granularity=day", "", key...)
}

func TestEveryRoute_Transfers(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(payable())) })
	owner := uuid.New()
	key := webtest.Keyed(owner, "test")
	_, sent, _ := s.CreateTransfer(t, webtest.TransferBody, key...)
	_, swap, _ := s.CreateTransfer(t, webtest.SwapBody, key...)
	s.Example(t, "a swap that nobody has sent", "GET", swap, "", key...)
	s.Example(t, "a swap", "GET", swap+"/preflight", "", key...)
	s.Example(t, "a hash", "POST", sent+"/transaction", reportOf(txHash("a")), key...)
	s.Example(t, "a swap", "PATCH", swap, `{"reference":"inv-43","labels":{"order":"43","customer":null}}`, key...)
	_, minting := keyOf(t, s)
	_, minted, _ := s.CreateTransfer(t, webtest.TransferBody, minting...)
	s.Example(t, "an hour", "POST", minted+"/client-token", `{"expiresIn":3600}`, minting...)
	s.Example(t, "a page and a developer's", "PATCH", "/v2/origins", `{"origins":["https://app.example.com","http://localhost:3000"]}`, minting...)
	s.Example(t, "two", "GET", "/v2/origins", "", minting...)
	s.Example(t, "a swap", "POST", swap+"/cancel", "", key...)
	_, simulated, _ := s.CreateTransfer(t, webtest.SwapBody, key...)
	s.Example(t, "a swap", "POST", simulated+"/simulate", `{"status":"filled"}`, key...)
	s.Example(t, "two intents", "GET", "/v2/transfers?limit=2", "", key...)
	s.Example(t, "an event", "GET", "/v2/events?limit=1", "", key...)
	s.Example(t, "a swap that was cancelled", "GET", swap+"/events", "", key...)
}

func TestEveryRoute_Refund(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(deposited())) })
	owner := uuid.New()
	location := s.createOpen(t, owner)
	s.Example(t, "a bridge that nobody has filled", "GET", location, "", webtest.Keyed(owner, "test")...)
	s.Example(t, "a bridge", "GET", location+"/refund", "", webtest.Keyed(owner, "live")...)
}

func TestEveryRoute_Webhooks(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	s.Example(t, "some events", "POST", "/v2/webhooks", `{"url":"https://example.com/hooks","types":["transfer.*"],"description":"Books"}`, key...)
	path := "/v2/webhooks/" + pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM webhooks`).String()
	s.Example(t, "a webhook", "GET", path, "", key...)
	s.Example(t, "webhooks", "GET", "/v2/webhooks", "", key...)
	s.Example(t, "all events", "PATCH", path, `{"types":null,"description":null}`, key...)
	s.Example(t, "a day's grace", "POST", path+"/rotate-secret", `{"gracePeriod":86400}`, key...)
	s.Example(t, "a test", "POST", path+"/test", "", key...)
	s.Example(t, "deliveries", "GET", path+"/deliveries", "", key...)
	event := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT event_id FROM deliveries`)
	pgtest.Exec(t, s.Store, `INSERT INTO delivery_attempts (webhook_id, event_id, ended_at, duration_ms, response_status, error, response_body)
		SELECT webhook_id, event_id, now(), 184, 500, $1, 'no database' FROM deliveries`,
		webhooks.OtherStatus.Text())
	s.Example(t, "a failed attempt", "GET", path+"/deliveries/"+feed.ID(event).String(), "", key...)
	s.Example(t, "a sample", "POST", path+"/test", `{"type":"transfer.filled"}`, key...)
}
