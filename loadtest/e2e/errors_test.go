package e2e_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// Every way a key can be refused, and every way a request can be wrong, with the answer a client sees.
func TestErrorResponses(t *testing.T) {
	t.Parallel()
	good := running.Env().TestKey
	valid := `{"source":{"account":"` + on(11155111, alice) + `","token":"` + on(11155111, usdc) + `","amount":"1"},"destination":{"account":"` + on(11155111, bob) + `"}}`
	swapped := strings.Replace(valid, alice, strings.ToLower(alice)[:41]+"G", 1)
	for name, c := range map[string]struct {
		key, method, path, body string
		status                  int
		code                    string
	}{
		"no key":                             {"", "GET", "/v2/tokens", "", 401, "INVALID_API_KEY"},
		"no key, no path":                    {"", "GET", "/v2/nothing", "", 401, "INVALID_API_KEY"},
		"wrong prefix":                       {"sk_prod_" + good[8:], "GET", "/v2/tokens", "", 403, "INVALID_API_KEY"},
		"too short":                          {good[:71], "GET", "/v2/tokens", "", 403, "INVALID_API_KEY"},
		"unknown":                            {apikey.New(network.Test).Reveal(), "GET", "/v2/tokens", "", 403, "INVALID_API_KEY"},
		"no such path":                       {good, "GET", "/v2/nothing", "", 404, "NOT_FOUND"},
		"no such place":                      {"", "GET", "/nothing", "", 404, "NOT_FOUND"},
		"wrong method":                       {good, "DELETE", "/v2/tokens", "", 405, "METHOD_NOT_ALLOWED"},
		"malformed chain":                    {good, "GET", "/v2/tokens?chain-id=1", "", 400, "INVALID_REQUEST"},
		"unknown parameter":                  {good, "GET", "/v2/tokens?chain=eip155:1", "", 400, "INVALID_REQUEST"},
		"unknown type":                       {good, "GET", "/v2/transfers?type=gift", "", 400, "INVALID_REQUEST"},
		"not JSON":                           {good, "POST", "/v2/transfers", "{", 400, "INVALID_REQUEST"},
		"wrong types":                        {good, "POST", "/v2/transfers", `{"source":1,"destination":[]}`, 400, "INVALID_REQUEST"},
		"a name twice":                       {good, "POST", "/v2/transfers", strings.Replace(valid, `"amount":"1"`, `"amount":"1","amount":"1"`, 1), 400, "INVALID_REQUEST"},
		"unknown field":                      {good, "POST", "/v2/transfers", strings.Replace(valid, `"source"`, `"memo":"x","source"`, 1), 400, "INVALID_REQUEST"},
		"malformed address":                  {good, "POST", "/v2/transfers", swapped, 400, "INVALID_REQUEST"},
		"unknown chain":                      {good, "POST", "/v2/transfers", strings.ReplaceAll(valid, "11155111", "424242424"), 422, "UNSUPPORTED_CHAIN"},
		"unknown token":                      {good, "POST", "/v2/transfers", strings.Replace(valid, usdc, bob, 1), 422, "UNKNOWN_TOKEN"},
		"zero":                               {good, "POST", "/v2/transfers", strings.Replace(valid, `"1"`, `"0"`, 1), 422, "INVALID_AMOUNT"},
		"a parameter before the environment": {good, "POST", "/v2/transfers?dry=1", strings.ReplaceAll(valid, "11155111", "1"), 400, "INVALID_REQUEST"},
		"17 KiB":                             {good, "POST", "/v2/transfers", valid + strings.Repeat(" ", 17<<10), 413, "PAYLOAD_TOO_LARGE"},
		"another's intent":                   {good, "GET", "/v2/transfers/01a1fc5d-1017-7f12-bb7c-34456ca20bc2", "", 404, "NOT_FOUND"},
		"a short password":                   {"", "POST", "/auth/sign-up/email", `{"name":"a","email":"a@example.com","password":"1"}`, 400, "INVALID_REQUEST"},
		"nobody's password":                  {"", "POST", "/auth/sign-in/email", `{"email":"nobody@example.com","password":"correct horse"}`, 401, "INVALID_EMAIL_OR_PASSWORD"},
		"no such auth route":                 {"", "POST", "/auth/nothing", `{}`, 404, "NOT_FOUND"},
		"another auth method":                {"", "DELETE", "/auth/sign-out", "", 405, "METHOD_NOT_ALLOWED"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent any
			if c.body != "" {
				sent = c.body
			}
			a := apiClient(t, c.key).do(c.method, c.path, sent)
			if got := expect[failure](t, a, c.status); got.Code != c.code || got.Message == "" {
				t.Errorf("%+v, want %s", got, c.code)
			}
			if a.Header.Get("X-Request-Id") == "" || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("headers %v", a.Header)
			}
		})
	}
}

// An expired key, a disabled one, and the keys of a disabled and of a deleted account are refused alike.
func TestKeys_Unusable(t *testing.T) {
	t.Parallel()
	browser := browserClient(t)
	email := "unusable@example.com"
	signUp(t, browser, "U", email, "correct horse battery")
	create := func(request map[string]any) createdKey {
		return expect[createdKey](t, browser.do(http.MethodPost, "/auth/api-key/create", request), 200)
	}
	expiring := create(map[string]any{"name": "expiring", "expiresIn": 1})
	disabled := create(map[string]any{"name": "disabled"})
	remaining := create(map[string]any{"name": "remaining"})
	if a := apiClient(t, remaining.Key).do(http.MethodGet, "/v2/chains", nil); a.Status != 200 {
		t.Fatalf("a good key: %d %s", a.Status, a.Body)
	}
	expect[map[string]any](t, browser.do(http.MethodPost, "/auth/api-key/update", map[string]any{"keyId": disabled.ID, "enabled": false}), 200)
	deadWithinASecond(t, disabled.Key)
	refusedSoon(t, expiring.Key)

	core(t, "", "accounts", "disable", email)
	deadWithinASecond(t, remaining.Key)
	core(t, "", "accounts", "enable", email)
	usableSoon(t, remaining.Key)
	core(t, "", "accounts", "delete", email)
	deadWithinASecond(t, remaining.Key)
}

func refusedSoon(t *testing.T, key string) { t.Helper(); answeredSoon(t, key, http.StatusForbidden) }

func usableSoon(t *testing.T, key string) { t.Helper(); answeredSoon(t, key, http.StatusOK) }

func answeredSoon(t *testing.T, key string, status int) {
	t.Helper()
	c := apiClient(t, key)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(5 * time.Second); ; <-ticker.C {
		a := c.do(http.MethodGet, "/v2/chains", nil)
		if a.Status == status {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %d %s, want %d", a.Status, a.Body, status)
		}
	}
}

// Three gateways on one Redis share a key's bucket exactly.
func TestLimit_SharedByGateways(t *testing.T) {
	t.Parallel()
	key := freshKey(t)
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for n := range 200 {
		all.Go(func() {
			c := apiClient(t, key)
			urls := running.Env().GatewayURLs
			c.base = urls[n%len(urls)]
			switch a, err := c.try(http.MethodGet, "/v2/chains", nil); {
			case err != nil:
				t.Error(err)
			case a.Status == http.StatusOK:
				passed.Add(1)
			case a.Status == http.StatusTooManyRequests:
				refused.Add(1)
			default:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	all.Wait()
	earned := int64(time.Since(began).Seconds() / 1.2)
	if n := passed.Load(); n < 50 || n > 50+earned || n+refused.Load() != 200 {
		t.Errorf("%d passed, %d refused in %s; want 50 and at most %d that were earned meanwhile", n, refused.Load(), time.Since(began), earned)
	}
}
