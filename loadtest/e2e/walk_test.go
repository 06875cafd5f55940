package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	usdc  = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	weth  = "0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	// The addresses that the first two contracts of a well-known development account get.
	settler      = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	otherSettler = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
)

type failure struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
	ChainID int            `json:"chainId"`
	KeyEnv  string         `json:"keyEnv"`
}

type createdKey struct {
	ID, Key, Prefix, Environment string
}

type record struct {
	ID, Type, Status, OrderID string
	Metadata                  struct{ ChainID string }
	Order                     struct{ Scheme, OrderData string }
	Tx                        struct {
		ChainID    int
		To, Value  string
		Allowances []struct{ Spender, Amount string }
	}
}

// body is a request to create an intent; empty parts are left out.
func body(from, fromToken, amount, to, toToken, least string) map[string]any {
	destination := map[string]any{"account": to}
	if toToken != "" {
		destination["token"] = toToken
	}
	if least != "" {
		destination["amount"] = least
	}
	return map[string]any{
		"source":      map[string]any{"account": from, "token": fromToken, "amount": amount},
		"destination": destination,
	}
}

func on(chain int, address string) string { return fmt.Sprintf("eip155:%d:%s", chain, address) }

// The way of a developer: sign up, make keys, look at tokens, record intents, list them, and run into every limit.
func TestSpec_Walk(t *testing.T) {
	t.Parallel()
	browser := browserClient(t)
	anyone := apiClient(t, "")
	email := fmt.Sprintf("walk-%d@example.com", time.Now().UnixNano())

	t.Log("anyone: health and the API's description")
	if a := anyone.do(http.MethodGet, "/health", nil); a.Status != http.StatusNoContent || len(a.Body) != 0 {
		t.Errorf("GET /health: %d %q", a.Status, a.Body)
	}
	if spec := expect[map[string]any](t, anyone.do(http.MethodGet, "/openapi.json", nil), 200); spec["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", spec["openapi"])
	}

	t.Log("a browser: sign up, make keys")
	if got := expect[failure](t, browser.do(http.MethodPost, "/auth/api-key/create", map[string]any{"name": "x"}), 401); got.Code != "UNAUTHORIZED" {
		t.Errorf("a key without a session: %+v", got)
	}
	signUp(t, browser, "Walker", email, "correct horse battery")
	testKey := expect[createdKey](t, browser.do(http.MethodPost, "/auth/api-key/create", map[string]any{"name": "test"}), 200)
	liveKey := expect[createdKey](t, browser.do(http.MethodPost, "/auth/api-key/create", map[string]any{
		"name": "live", "environment": "live",
	}), 200)
	if !strings.HasPrefix(testKey.Key, "sk_test_") || len(testKey.Key) != 72 || !strings.HasPrefix(liveKey.Key, "sk_live_") {
		t.Fatalf("keys %+v %+v", testKey, liveKey)
	}
	if a := browser.do(http.MethodGet, "/auth/api-key/list", nil); strings.Contains(string(a.Body), testKey.Key) {
		t.Error("the list shows a key again")
	}
	if got := expect[failure](t, browser.do(http.MethodGet, "/v2/tokens", nil), 401); got.Code != "INVALID_API_KEY" {
		t.Errorf("a session in place of a key: %+v", got)
	}
	if got := expect[failure](t, apiClient(t, testKey.Key).do(http.MethodPost, "/auth/api-key/create", map[string]any{"name": "x"}), 401); got.Code != "UNAUTHORIZED" {
		t.Errorf("a key in place of a session: %+v", got)
	}

	t.Log("an API client: tokens")
	tester, trader := apiClient(t, testKey.Key), apiClient(t, liveKey.Key)
	all := expect[[]map[string]any](t, tester.do(http.MethodGet, "/v2/tokens", nil), 200)
	some := expect[[]map[string]any](t, tester.do(http.MethodGet, "/v2/tokens?chain-id=eip155:11155111", nil), 200)
	if len(all) < 1000 || len(some) < 3 || len(some) >= len(all) {
		t.Errorf("%d tokens, %d on Sepolia", len(all), len(some))
	}

	t.Log("intents: a transfer, a swap without and with a settler, a bridge")
	made := expect[record](t, tester.do(http.MethodPost, "/v2/transfers", body(on(11155111, alice), on(11155111, usdc), "1000000", on(11155111, bob), "", "")), 201)
	if made.Type != "transfer" || made.Status != "created" || made.Tx.To != usdc || made.Tx.ChainID != 11155111 || len(made.OrderID) != 66 {
		t.Errorf("transfer %+v", made)
	}
	if got := expect[failure](t, trader.do(http.MethodPost, "/v2/transfers/"+made.ID+"/cancel", nil), 403); got.Code != "CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT" {
		t.Errorf("a live key cancels a test intent: %+v", got)
	}
	swap := body(on(11155111, alice), on(11155111, usdc), "1000000", on(11155111, alice), on(11155111, weth), "5")
	if got := expect[failure](t, tester.do(http.MethodPost, "/v2/transfers", swap), 422); got.Code != "SETTLER_NOT_CONFIGURED" {
		t.Errorf("a swap without a settler: %+v", got)
	}
	imported := core(t, `{"chains":[
		{"chainId":"eip155:11155111","name":"Sepolia","environment":"test","nativeCurrency":{"name":"Sepolia Ether","symbol":"ETH","decimals":18},
		 "settler":{"address":"`+settler+`","sameChain":true}},
		{"chainId":"eip155:84532","name":"Base Sepolia","environment":"test","nativeCurrency":{"name":"Sepolia Ether","symbol":"ETH","decimals":18},
		 "settler":{"address":"`+otherSettler+`"}}]}`, "chains", "import", "-")
	if imported != "chains: 0 added, 2 updated, 0 unchanged, 0 refused\n" {
		t.Errorf("import: %s", imported)
	}
	swapped := eventually201(t, tester, swap)
	bridged := expect[record](t, tester.do(http.MethodPost, "/v2/transfers",
		body(on(11155111, alice), on(11155111, usdc), "1000000", on(84532, bob), on(84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e"), "995000")), 201)
	for _, r := range []record{swapped, bridged} {
		if r.Tx.To != settler || len(r.Tx.Allowances) != 1 || r.Tx.Allowances[0].Spender != settler {
			t.Errorf("%s %+v", r.Type, r)
		}
	}

	t.Log("lists")
	type summary struct{ ID, Type string }
	want := []summary{{bridged.ID, "bridge"}, {swapped.ID, "swap"}, {made.ID, "transfer"}}
	if diff := cmp.Diff(want, expect[[]summary](t, tester.do(http.MethodGet, "/v2/transfers", nil), 200)); diff != "" {
		t.Errorf("all intents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:2], expect[[]summary](t, tester.do(http.MethodGet, "/v2/transfers?type=swap", nil), 200)); diff != "" {
		t.Errorf("swaps (-want +got):\n%s", diff)
	}
	for _, name := range []string{made.ID, made.OrderID} {
		if got := expect[record](t, tester.do(http.MethodGet, "/v2/transfers/"+name, nil), 200); got.ID != made.ID {
			t.Errorf("GET /v2/transfers/%s: %+v", name, got)
		}
	}

	t.Log("environments")
	wrong := expect[failure](t, trader.do(http.MethodPost, "/v2/transfers", swap), 403)
	if wrong.Code != "CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT" || wrong.ChainID != 11155111 || wrong.KeyEnv != "live" {
		t.Errorf("a live key on a testnet: %+v", wrong)
	}
	wrong = expect[failure](t, tester.do(http.MethodPost, "/v2/transfers", body(on(1, alice), on(1, "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"), "1", on(1, bob), "", "")), 403)
	if wrong.ChainID != 1 || wrong.KeyEnv != "test" {
		t.Errorf("a test key on a mainnet: %+v", wrong)
	}

	t.Log("a deleted key is dead within a second")
	expect[map[string]any](t, browser.do(http.MethodPost, "/auth/api-key/delete", map[string]any{"keyId": liveKey.ID}), 200)
	deadWithinASecond(t, liveKey.Key)

	t.Log("sign out")
	expect[map[string]any](t, browser.do(http.MethodPost, "/auth/sign-out", map[string]any{}), 200)
	if a := browser.do(http.MethodGet, "/auth/get-session", nil); string(a.Body) != "null" {
		t.Errorf("after signing out: %s", a.Body)
	}
}

// eventually201 tries for the second that cores may take to learn of a new settler.
func eventually201(t *testing.T, c *client, request any) record {
	t.Helper()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(5 * time.Second); ; <-ticker.C {
		if a := c.do(http.MethodPost, "/v2/transfers", request); a.Status == http.StatusCreated || time.Now().After(deadline) {
			return expect[record](t, a, 201)
		}
	}
}

// deadWithinASecond wants the key refused by every gateway a second from now, whatever they answered before.
func deadWithinASecond(t *testing.T, key string) {
	t.Helper()
	revoked := time.Now()
	for _, gateway := range running.Env().GatewayURLs {
		c := apiClient(t, key)
		c.base = gateway
		ticker := time.NewTicker(20 * time.Millisecond)
		for {
			after := time.Since(revoked)
			a := c.do(http.MethodGet, "/v2/chains", nil)
			if a.Status == http.StatusForbidden {
				break
			}
			if after > time.Second {
				t.Errorf("%s still answers %d to a revoked key after %s", gateway, a.Status, after)
				break
			}
			<-ticker.C
		}
		ticker.Stop()
	}
}

// Fifty requests pass, the next is told how long to wait, and after that wait one passes.
func TestLimit_FiftyThenRefused(t *testing.T) {
	t.Parallel()
	c := apiClient(t, freshKey(t))
	began := time.Now()
	for n := 1; n <= 50; n++ {
		if a := c.do(http.MethodGet, "/v2/chains", nil); a.Status != http.StatusOK {
			t.Fatalf("request %d: %d %s", n, a.Status, a.Body)
		}
	}
	a := c.do(http.MethodGet, "/v2/chains", nil)
	// A bucket of 50 refills by one each 1.2 s: a slow machine earns that many more.
	for passed := 51; a.Status == http.StatusOK && passed <= 50+int(time.Since(began).Seconds()/1.2); passed++ {
		a = c.do(http.MethodGet, "/v2/chains", nil)
	}
	refused := expect[failure](t, a, 429)
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	milliseconds, _ := refused.Details["tryAgainIn"].(float64)
	if err != nil || wait < 1 || wait > 2 || refused.Code != "RATE_LIMITED" || milliseconds <= 0 || milliseconds > 1200 {
		t.Fatalf("429 with Retry-After %q: %+v", a.Header.Get("Retry-After"), refused)
	}
	timer := time.NewTimer(time.Duration(wait) * time.Second)
	defer timer.Stop()
	<-timer.C
	if a := c.do(http.MethodGet, "/v2/chains", nil); a.Status != http.StatusOK {
		t.Errorf("after waiting %d s: %d %s", wait, a.Status, a.Body)
	}
}

// freshKey is a test key of an account of its own, whose bucket nobody has touched.
func freshKey(t *testing.T) string {
	t.Helper()
	browser := browserClient(t)
	signUp(t, browser, "Fresh", fmt.Sprintf("fresh-%d@example.com", time.Now().UnixNano()), "correct horse battery")
	return expect[createdKey](t, browser.do(http.MethodPost, "/auth/api-key/create", map[string]any{"name": "fresh"}), 200).Key
}
