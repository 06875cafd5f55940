package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	intents "intents.internal/pkg/client"
)

// A developer signs up, makes keys and records intents with them: with an Idempotency-Key, of each kind once an operator has imported
// settlements, in pages, polled and cancelled, and not in another environment than the key's.
func TestAPIClient(t *testing.T) {
	t.Parallel()
	developer := newPerson(t, running.Env().GatewayURL)
	testKey := developer.newKey()
	liveKey := expect[createdKey](t, developer.post("/auth/api-key/create", map[string]any{"name": "live", "environment": "live"}), 200)
	if !strings.HasPrefix(testKey.Key, "sk_test_") || len(testKey.Key) != 72 || !strings.HasPrefix(liveKey.Key, "sk_live_") {
		t.Fatalf("keys %+v %+v", testKey, liveKey)
	}
	refused(t, developer.do(http.MethodGet, "/v2/tokens", nil), 401, "INVALID_API_KEY") // a session is no key
	refused(t, apiClient(t, testKey.Key).do(http.MethodPost, "/auth/api-key/create", map[string]any{"name": "x"}), 401, "UNAUTHORIZED")
	tester, trader := apiClient(t, testKey.Key), apiClient(t, liveKey.Key)
	all := expect[[]any](t, tester.do(http.MethodGet, "/v2/tokens", nil), 200)
	some := expect[[]any](t, tester.do(http.MethodGet, "/v2/tokens?chain-id=eip155:11155111", nil), 200)
	if len(all) < 1000 || len(some) < 3 || len(some) >= len(all) {
		t.Errorf("%d tokens, %d on Sepolia", len(all), len(some))
	}

	t.Log("a transfer, asked for twice")
	once := []string{"Idempotency-Key", "once"}
	made := expect[record](t, tester.do(http.MethodPost, "/v2/transfers", payment("1000000"), once...), 201)
	if made.Type != "transfer" || made.Status != "created" || made.Tx.To != usdc || made.Tx.ChainID != sepolia || len(made.OrderID) != 66 {
		t.Errorf("transfer %+v", made)
	}
	spelled := body(on(sepolia, alice), on(sepolia, usdc), "1000000", on(sepolia, bob), on(sepolia, usdc), "1000000")
	again := tester.do(http.MethodPost, "/v2/transfers", spelled, once...)
	if got := expect[record](t, again, 201); got.ID != made.ID || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same request: %v %+v", again.Header, got)
	}

	t.Log("a swap and a bridge, without settlements and with them")
	swap := body(on(sepolia, alice), on(sepolia, usdc), "1000000", on(sepolia, alice), on(sepolia, "0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"), "5")
	refused(t, tester.do(http.MethodPost, "/v2/transfers", swap), 422, "SETTLER_NOT_CONFIGURED")
	imported := mustCore(t, running, `{"chains":[
		{"chainId":"eip155:11155111","name":"Sepolia","environment":"test","nativeCurrency":{"name":"Sepolia Ether","symbol":"ETH","decimals":18},
		 "settlements":[`+settlement+`]},
		{"chainId":"eip155:84532","name":"Base Sepolia","environment":"test","nativeCurrency":{"name":"Sepolia Ether","symbol":"ETH","decimals":18},
		 "settlements":[`+settlement+`]}]}`, "chains", "import", "-")
	if imported != "chains: 0 added, 2 updated, 0 unchanged, 0 refused\n" {
		t.Errorf("import: %s", imported)
	}
	swapped := create(t, tester, swap)
	bridged := create(t, tester, body(on(sepolia, alice), on(sepolia, usdc), "1000000",
		on(84532, bob), on(84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e"), "995000"))
	for _, r := range []record{swapped, bridged} {
		if r.Tx.To != inputSettler || len(r.Tx.Allowances) != 1 || r.Tx.Allowances[0].Spender != inputSettler {
			t.Errorf("%s %+v", r.Type, r)
		}
	}

	t.Log("pages, and polling")
	var listed []string
	api := must(intents.New(tester.base, testKey.Key, intents.WithHTTPClient(tester.http)))(t)
	for one, err := range api.Transfers.All(t.Context(), intents.TransferQuery{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, string(one.Type)+" "+one.ID)
	}
	if diff := cmp.Diff([]string{"bridge " + bridged.ID, "swap " + swapped.ID, "transfer " + made.ID}, listed); diff != "" {
		t.Errorf("all intents (-want +got):\n%s", diff)
	}
	poll := "/v2/transfers?type=transfer"
	tag := tester.do(http.MethodGet, poll, nil).Header.Get("ETag")
	if a := tester.do(http.MethodGet, poll, nil, "If-None-Match", tag); a.Status != http.StatusNotModified {
		t.Errorf("an unchanged list: %d", a.Status)
	}
	if got := must(api.Transfers.Cancel(t.Context(), made.ID))(t); got.Status != intents.StatusCancelled || !got.Final || got.Tx != nil {
		t.Errorf("cancelled: %+v", got)
	}
	changed := expect[[]record](t, tester.do(http.MethodGet, poll, nil, "If-None-Match", tag), 200)
	if len(changed) != 1 || changed[0].Status != "cancelled" {
		t.Errorf("the changed list: %+v", changed)
	}
	for _, name := range []string{made.ID, made.OrderID} {
		if got := must(api.Transfers.Get(t.Context(), name))(t); got.ID != made.ID {
			t.Errorf("GET /v2/transfers/%s: %+v", name, got)
		}
	}

	t.Log("another environment")
	for who, request := range map[*client]struct {
		path  string
		body  any
		chain int
		env   string
	}{
		trader: {"/v2/transfers/" + swapped.ID + "/cancel", nil, sepolia, "live"},
		tester: {"/v2/transfers", body(on(1, alice), on(1, nativeToken), "1", on(1, bob), "", ""), 1, "test"},
	} {
		got := refused(t, who.do(http.MethodPost, request.path, request.body), 403, "CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT")
		if got.ChainID != request.chain || got.KeyEnv != request.env {
			t.Errorf("%s: %+v", request.path, got)
		}
	}
	developer.post("/auth/sign-out", map[string]any{})
	if a := developer.do(http.MethodGet, "/auth/get-session", nil); string(a.Body) != "null" {
		t.Errorf("after signing out: %s", a.Body)
	}
}

// Fifty requests pass at three gateways together; the next is told how long to wait, and after that wait one passes.
func TestLimit_SeveralGateways(t *testing.T) {
	t.Parallel()
	c := apiClient(t, freshKey(t))
	gateways := running.Env().GatewayURLs
	passed, last := limited(t, c, gateways)
	wait, err := strconv.Atoi(last.Header.Get("Retry-After"))
	got := refused(t, last, 429, "RATE_LIMITED")
	milliseconds, _ := got.Details["tryAgainIn"].(float64)
	if err != nil || wait < 1 || wait > 2 || milliseconds <= 0 || milliseconds > 1200 {
		t.Fatalf("429 after %d requests with Retry-After %q: %+v", passed, last.Header.Get("Retry-After"), got)
	}
	timer := time.NewTimer(time.Duration(wait) * time.Second)
	defer timer.Stop()
	<-timer.C
	if a := c.do(http.MethodGet, "/v2/chains", nil); a.Status != http.StatusOK {
		t.Errorf("after waiting %d s: %d %s", wait, a.Status, a.Body)
	}
}

// limited makes requests with a fresh key, at each gateway in turn, until one is refused, which must be after fifty, and as many as the
// limit allows again meanwhile.
func limited(t *testing.T, c *client, gateways []string) (passed int, last answer) {
	t.Helper()
	began := time.Now()
	for ; last.Status != http.StatusTooManyRequests; passed++ {
		c.base = gateways[passed%len(gateways)]
		if last = c.do(http.MethodGet, "/v2/chains", nil); last.Status != http.StatusOK && last.Status != http.StatusTooManyRequests {
			t.Fatalf("request %d: %d %s", passed+1, last.Status, last.Body)
		}
	}
	passed--
	if most := 50 + int(time.Since(began)/(1200*time.Millisecond)) + 1; passed < 50 || passed > most {
		t.Errorf("%d requests passed in %s, want 50 to %d", passed, time.Since(began), most)
	}
	return passed, last
}
