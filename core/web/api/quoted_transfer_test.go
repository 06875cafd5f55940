package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
)

// quote asks for a quote and returns its id.
func (s *service) quote(t *testing.T, key ...string) (id string) {
	t.Helper()
	response := s.Send(t, "POST", "/v2/quotes", exactInput, key...)
	var got struct{ Quotes []struct{ ID string } }
	if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &got); err != nil || response.StatusCode != 200 || len(got.Quotes) != 1 {
		t.Fatalf("%d: %+v, %v", response.StatusCode, got, err)
	}
	return got.Quotes[0].ID
}

// of is a request for the intent of a quote, with further members.
func of(quoteID, rest string) string { return `{"quoteId":"` + quoteID + `"` + rest + `}` }

func TestCreateTransfer_Quoted(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(t, providertest.Start(t, "solver", network.Test)))
	key := webtest.Keyed(uuid.New(), "test")
	id := s.quote(t, key...)
	request := of(id, `,"reference":"inv-42"`)
	once := slices.Concat(key, []string{"Idempotency-Key", "order-1"})
	got := s.Example(t, "a quote", "POST", "/v2/transfers", request, once...)
	replayed := s.Call(t, "POST", "/v2/transfers", request, once...)
	if replayed.Header["Idempotent-Replayed"] != "true" {
		t.Errorf("repeated: %+v", replayed.Header)
	}
	delete(replayed.Header, "Idempotent-Replayed")
	webtest.Same(t, "repeated", got, replayed)

	used := got.Header["Location"][len("/v2/transfers/"):]
	again := webtest.Refused(t, 409, "QUOTE_USED", "The quote has made the transfer "+used+", and makes no other. Read that one, or ask for a new quote.")
	again.Body.(map[string]any)["details"] = map[string]any{"transferId": "<id>"}
	webtest.Same(t, "a second time", again, s.Call(t, "POST", "/v2/transfers", of(id, ""), key...))

	whole := strings.Replace(webtest.BridgeBody, "{", `{"quoteId":"`+s.quote(t, key...)+`",`, 1)
	if got := s.Call(t, "POST", "/v2/transfers", whole, key...); got.Status != 201 {
		t.Errorf("with the whole body: %+v", got)
	}
}

func TestCreateTransfer_QuoteRefused(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(t, providertest.Start(t, "solver", network.Test)))
	owner := uuid.New()
	key := webtest.Keyed(owner, "test")
	id := s.quote(t, key...)
	for name, request := range map[string]string{
		"no quote's id":             of("q-1", ""),
		"a quote and one side":      of(id, `,"source":`+webtest.BridgeBody[len(`{"source":`):strings.Index(webtest.BridgeBody, `,"destination"`)]),
		"a quote that is not there": of(uuid.NewString(), ""),
		"a unit more than quoted":   strings.Replace(strings.Replace(webtest.BridgeBody, `"4"`, `"5"`, 1), "{", `{"quoteId":"`+id+`",`, 1),
		"another deadline":          of(id, `,"deadline":"2030-01-01T00:00:00Z"`),
	} {
		s.Example(t, name, "POST", "/v2/transfers", request, key...)
	}
	mainnet := strings.ReplaceAll(strings.Replace(webtest.BridgeBody, "{", `{"quoteId":"`+id+`",`, 1), "eip155:84532", "eip155:1")
	if got := s.Call(t, "POST", "/v2/transfers", mainnet, key...); got.Status != 403 {
		t.Errorf("a chain of the other environment: %+v", got)
	}
	notThere := webtest.Refused(t, 404, "QUOTE_NOT_FOUND", "The account has no such quote in the environment of this key. Unused quotes are kept for a day after they expire; ask for a new one.")
	webtest.Same(t, "another account", notThere, s.Call(t, "POST", "/v2/transfers", of(id, ""), webtest.Keyed(uuid.New(), "test")...))
	webtest.Same(t, "another environment", notThere, s.Call(t, "POST", "/v2/transfers", of(id, ""), webtest.Keyed(owner, "live")...))

	pgtest.Exec(t, s.Store, `UPDATE quotes SET expires_at = now() - interval '1 second'`)
	s.Example(t, "a quote that has expired", "POST", "/v2/transfers", of(id, ""), key...)
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers`); n != 0 {
		t.Errorf("%d intents are stored", n)
	}
}

// The transaction of a quote's intent is handed out until the quote ends.
func TestGetTransfer_QuoteExpired(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(t, providertest.Start(t, "solver", network.Test)))
	key := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, of(s.quote(t, key...), ""), key...)
	record := func() map[string]any { return s.Call(t, "GET", location, "", key...).Body.(map[string]any) }
	before := record()
	if diff := cmp.Diff(map[string]any{"id": "<id>", "provider": "solver", "expiresAt": "<time>"}, before["quote"]); diff != "" || before["tx"] == nil {
		t.Errorf("tx %v, quote (-want +got):\n%s", before["tx"], diff)
	}
	pgtest.Exec(t, s.Store, `UPDATE transfers SET quote_expires_at = now() - interval '1 second'`)
	if after := record(); after["tx"] != nil || after["quote"] == nil {
		t.Errorf("tx %v, quote %v", after["tx"], after["quote"])
	}
	s.Example(t, "a quote that has expired before its transaction was sent", "GET", location+"/preflight", "", key...)
	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'cancelled'`)
	if got := s.Call(t, "GET", location+"/preflight", "", key...); got.Status != 409 || got.Body.(map[string]any)["code"] != "STATUS_CONFLICT" {
		t.Errorf("cancelled: %+v", got)
	}
}

func TestGetQuote(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(t, providertest.Start(t, "solver", network.Test)))
	owner := uuid.New()
	key := webtest.Keyed(owner, "test")
	id := s.quote(t, key...)
	path := "/v2/quotes/" + id
	s.Example(t, "a quote", "GET", path, "", key...)
	if status, _, record := s.CreateTransfer(t, of(id, ""), key...); status != 201 {
		t.Fatalf("%d %s", status, record)
	}
	pgtest.Exec(t, s.Store, `UPDATE quotes SET expires_at = now() - interval '1 second'`)
	s.Example(t, "a quote that has made a transfer, and has expired since", "GET", path, "", key...)

	s.Example(t, "a quote that is not there", "GET", "/v2/quotes/"+uuid.NewString(), "", key...)
	notThere := webtest.Refused(t, 404, "QUOTE_NOT_FOUND", "The account has no such quote in the environment of this key. Unused quotes are kept for a day after they expire; ask for a new one.")
	webtest.Same(t, "another account", notThere, s.Call(t, "GET", path, "", webtest.Keyed(uuid.New(), "test")...))
	webtest.Same(t, "another environment", notThere, s.Call(t, "GET", path, "", webtest.Keyed(owner, "live")...))
	webtest.Same(t, "another spelling", notThere, s.Call(t, "GET", "/v2/quotes/"+strings.ReplaceAll(id, "-", ""), "", key...))
	webtest.Same(t, "query", webtest.Invalid(t, "now", "is not a known parameter"), s.Call(t, "GET", path+"?now=1", "", key...))
}
