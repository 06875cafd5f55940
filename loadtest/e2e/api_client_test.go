package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
)

// A developer signs up, makes keys and records intents with them: with an Idempotency-Key, of each kind once an operator has imported
// settlements, in pages, polled and cancelled, and not in another environment than the key's.
func TestAPIClient(t *testing.T) {
	journey(t)
	t.Parallel()
	developer := newPerson(t, shared.Stack.Env().GatewayURL)
	testKey := developer.newKey()
	liveKey := system.Expect[createdKey](t, developer.post("/auth/api-key/create", map[string]any{"name": "live", "environment": "live"}), 200)
	if !strings.HasPrefix(testKey.Key, "sk_test_") || len(testKey.Key) != 72 || !strings.HasPrefix(liveKey.Key, "sk_live_") {
		t.Fatalf("keys %+v %+v", testKey, liveKey)
	}
	gateway, raw := shared.Stack.Env().GatewayURL, rawClient(t, shared.Stack.Env().GatewayURL, testKey.Key)
	refused(t, developer.Do(http.MethodGet, "/v2/tokens", nil), 401, "INVALID_API_KEY") // a session is no key
	refused(t, raw.Do(http.MethodPost, "/auth/api-key/create", map[string]any{"name": "x"}), 401, "UNAUTHORIZED")
	tester, trader := apiClient(t, gateway, testKey.Key), apiClient(t, gateway, liveKey.Key)
	all, some := must(tester.Tokens.List(t.Context(), ""))(t), must(tester.Tokens.List(t.Context(), "eip155:11155111"))(t)
	if len(all) < 1000 || len(some) < 3 || len(some) >= len(all) {
		t.Errorf("%d tokens, %d on Sepolia", len(all), len(some))
	}

	t.Log("a transfer, asked for twice")
	request := payment("1000000")
	request.IdempotencyKey = "once"
	made := must(tester.Transfers.Create(t.Context(), request))(t)
	if made.Type != "transfer" || made.Status != "created" || made.Tx.To != usdc || made.Tx.ChainID != sepolia || len(made.OrderID) != 66 {
		t.Errorf("transfer %+v", made)
	}
	spelled := body(on(sepolia, alice), on(sepolia, usdc), "1000000", on(sepolia, bob), on(sepolia, usdc), "1000000")
	again := raw.Do(http.MethodPost, "/v2/transfers", spelled, "Idempotency-Key", "once")
	if got := system.Expect[intents.Transfer](t, again, 201); got.ID != made.ID || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same request: %v %+v", again.Header, got)
	}

	t.Log("a swap and a bridge, without settlements and with them")
	swap := body(on(sepolia, alice), on(sepolia, usdc), "1000000", on(sepolia, alice), on(sepolia, "0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"), "5")
	_, err := tester.Transfers.Create(t.Context(), swap)
	failed(t, err, 422, intents.CodeSettlerNotConfigured)
	imported := mustCore(t, shared.Stack, `{"chains":[
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
	for _, r := range []*intents.Transfer{swapped, bridged} {
		if r.Tx.To != inputSettler || len(r.Tx.Allowances) != 1 || r.Tx.Allowances[0].Spender != inputSettler {
			t.Errorf("%s %+v", r.Type, r)
		}
	}

	t.Log("pages, and polling")
	var listed []string
	for one, err := range tester.Transfers.All(t.Context(), intents.TransferQuery{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, string(one.Type)+" "+one.ID)
	}
	if diff := cmp.Diff([]string{"bridge " + bridged.ID, "swap " + swapped.ID, "transfer " + made.ID}, listed); diff != "" {
		t.Errorf("all intents (-want +got):\n%s", diff)
	}
	poll := "/v2/transfers?type=transfer"
	tag := raw.Do(http.MethodGet, poll, nil).Header.Get("ETag")
	if a := raw.Do(http.MethodGet, poll, nil, "If-None-Match", tag); a.Status != http.StatusNotModified {
		t.Errorf("an unchanged list: %d", a.Status)
	}
	if got := must(tester.Transfers.Cancel(t.Context(), made.ID))(t); got.Status != intents.StatusCancelled || !got.Final || got.Tx != nil {
		t.Errorf("cancelled: %+v", got)
	}
	changed := system.Expect[[]intents.TransferSummary](t, raw.Do(http.MethodGet, poll, nil, "If-None-Match", tag), 200)
	if len(changed) != 1 || changed[0].Status != "cancelled" {
		t.Errorf("the changed list: %+v", changed)
	}
	for _, name := range []string{made.ID, made.OrderID} {
		if got := must(tester.Transfers.Get(t.Context(), name))(t); got.ID != made.ID {
			t.Errorf("GET /v2/transfers/%s: %+v", name, got)
		}
	}

	t.Log("another environment")
	ofAnotherEnvironment := func(err error, chain int, env string) {
		t.Helper()
		got := string(failed(t, err, 403, intents.CodeChainNotAllowedForKeyEnvironment).Body)
		if !strings.Contains(got, fmt.Sprintf(`"chainId":%d,"keyEnv":%q`, chain, env)) {
			t.Errorf("the chain %d with a %s key: %s", chain, env, got)
		}
	}
	_, err = trader.Transfers.Cancel(t.Context(), swapped.ID)
	ofAnotherEnvironment(err, sepolia, "live")
	_, err = tester.Transfers.Create(t.Context(), body(on(1, alice), on(1, nativeToken), "1", on(1, bob), "", ""))
	ofAnotherEnvironment(err, 1, "test")
	developer.post("/auth/sign-out", map[string]any{})
	if a := developer.Do(http.MethodGet, "/auth/get-session", nil); string(a.Body) != "null" {
		t.Errorf("after signing out: %s", a.Body)
	}
}

// Fifty requests pass at three gateways together; the next is told how long to wait, and after that wait one passes.
func TestLimit_SeveralGateways(t *testing.T) {
	journey(t)
	t.Parallel()
	key, gateways := freshKey(t), shared.Stack.Env().GatewayURLs
	refusal := limited(t, key, gateways)
	milliseconds := decoded[struct{ TryAgainIn float64 }](t, string(refusal.Details)).TryAgainIn
	if refusal.RetryAfter < time.Second || refusal.RetryAfter > 2*time.Second || milliseconds <= 0 || milliseconds > 1200 {
		t.Fatalf("429 with Retry-After %s and %s", refusal.RetryAfter, refusal.Details)
	}
	timer := time.NewTimer(refusal.RetryAfter)
	defer timer.Stop()
	<-timer.C
	if _, err := apiClient(t, gateways[0], key).Chains.List(t.Context()); err != nil {
		t.Errorf("after waiting %s: %v", refusal.RetryAfter, err)
	}
}

// limited makes requests with a fresh key, at each gateway in turn, until one is refused, which must be after fifty, and as many as the
// limit allows again meanwhile.
func limited(t *testing.T, key string, gateways []string) intents.Error {
	t.Helper()
	began, passed := time.Now(), 0
	for ; ; passed++ {
		if _, err := apiClient(t, gateways[passed%len(gateways)], key).Chains.List(t.Context()); err != nil {
			if most := 50 + int(time.Since(began)/(1200*time.Millisecond)) + 1; passed < 50 || passed > most {
				t.Errorf("%d requests passed in %s, want 50 to %d", passed, time.Since(began), most)
			}
			return failed(t, err, 429, intents.CodeRateLimited)
		}
	}
}
