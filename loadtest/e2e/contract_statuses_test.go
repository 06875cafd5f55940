package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/pkg/apikey"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/network"
)

// exchange is a request, and the status and, of a refusal, the code that it is answered with.
type exchange struct {
	who          *client
	method, path string
	body         any
	want         string
	header       []string
}

// try makes the exchanges in order. The transport holds each response to openapi.json.
func try(t *testing.T, exchanges []exchange) {
	t.Helper()
	for _, e := range exchanges {
		a := e.who.do(e.method, e.path, e.body, e.header...)
		status, code, _ := strings.Cut(e.want, " ")
		if fmt.Sprint(a.Status) != status || code != "" && !strings.Contains(string(a.Body), `"code":"`+code+`"`) {
			t.Errorf("%s %s %v %.200v: %d %s, want %s", e.method, e.path, e.header, e.body, a.Status, a.Body, e.want)
		}
	}
}

// Each operation's statuses can be had, and every response is as openapi.json describes it.
func TestContract_EveryStatus(t *testing.T) {
	t.Parallel()
	nobody := uuid.NewString()
	padded := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	gateway := running.Env().GatewayURL
	anyone := rawClient(t, gateway, "")
	t.Run("documents and keys", func(t *testing.T) {
		t.Parallel()
		good := running.Env().TestKey
		with := func(key string) *client { return rawClient(t, gateway, key) }
		try(t, []exchange{
			{anyone, "GET", "/v2/health", nil, "204", nil},
			{anyone, "HEAD", "/health", nil, "204", nil},
			{anyone, "POST", "/health", nil, "405 METHOD_NOT_ALLOWED", nil},
			{anyone, "GET", "/v2/openapi.json", nil, "200", []string{"Accept-Encoding", "gzip"}},
			{anyone, "GET", "/openapi.json", nil, "304", []string{"If-None-Match", "*"}},
			{anyone, "GET", "/docs", nil, "200", nil},
			{anyone, "GET", "/docs", nil, "304", []string{"If-None-Match", "*"}},
			{anyone, "HEAD", "/docs", nil, "200", nil},
			{anyone, "GET", "/nothing", nil, "404 NOT_FOUND", nil},
			{anyone, "GET", "/v2/tokens", nil, "401 INVALID_API_KEY", nil},
			{with("sk_prod_" + good[8:]), "GET", "/v2/tokens", nil, "403 INVALID_API_KEY", nil},
			{with(good[:71]), "GET", "/v2/tokens", nil, "403 INVALID_API_KEY", nil},
			{with(apikey.New(network.Test).Reveal()), "GET", "/v2/tokens", nil, "403 INVALID_API_KEY", nil},
			{with(good), "GET", "/v2/nothing", nil, "404 NOT_FOUND", nil},
		})
	})
	t.Run("tokens, chains and transfers", func(t *testing.T) {
		t.Parallel()
		key, once := freshKey(t), payment("1")
		me, api := rawClient(t, gateway, key), apiClient(t, gateway, key)
		once.IdempotencyKey = "once"
		made, late := must(api.Transfers.Create(t.Context(), once))(t), pay(t, api, 1)[0]
		execute(t, running.Env().DatabaseURL, "UPDATE transfers SET status = 'expired' WHERE id = $1", late)
		at, nowhere := "/v2/transfers/"+made.ID, "/v2/transfers/"+nobody
		unsupported := body(on(424242424, alice), on(424242424, usdc), "1", on(424242424, bob), "", "")
		swap := body(on(1, alice), on(1, nativeToken), "1", on(1, bob), "", "")
		try(t, []exchange{
			{me, "GET", "/v2/tokens", nil, "200", []string{"Accept-Encoding", "zstd"}},
			{me, "GET", "/v2/tokens", nil, "304", []string{"If-None-Match", "*"}},
			{me, "GET", "/v2/tokens?chain-id=eip155:424242424", nil, "200", nil},
			{me, "GET", "/v2/tokens?chain-id=1", nil, "400 INVALID_REQUEST", nil},
			{me, "DELETE", "/v2/tokens", nil, "405 METHOD_NOT_ALLOWED", nil},
			{me, "GET", "/v2/chains", nil, "200", []string{"Accept-Encoding", "gzip"}},
			{me, "GET", "/v2/chains", nil, "304", []string{"If-None-Match", "*"}},
			{me, "GET", "/v2/chains?page=2", nil, "400 INVALID_REQUEST", nil},
			{me, "GET", "/v2/transfers?limit=1&status=created,cancelled&chain-id=eip155:11155111", nil, "200", nil},
			{me, "GET", "/v2/transfers?order-id=" + made.OrderID + "&updated-since=2026-01-01T00:00:00Z", nil, "200", nil},
			{me, "GET", "/v2/transfers", nil, "304", []string{"If-None-Match", "*"}},
			{me, "GET", "/v2/transfers?limit=0&cursor=x&status=gone", nil, "400 INVALID_REQUEST", nil},
			{me, "POST", "/v2/transfers", payment("1"), "201", []string{"Idempotency-Key", `"once"`}},
			{me, "POST", "/v2/transfers", payment("2"), "422 IDEMPOTENCY_KEY_REUSED", []string{"Idempotency-Key", "once"}},
			{me, "POST", "/v2/transfers", payment("1"), "400 INVALID_REQUEST", []string{"Idempotency-Key", ""}},
			{me, "POST", "/v2/transfers", payment("1"), "415 UNSUPPORTED_MEDIA_TYPE", []string{"Content-Type", "text/plain"}},
			{me, "POST", "/v2/transfers", payment("1"), "415 UNSUPPORTED_MEDIA_TYPE", []string{"Content-Encoding", "gzip"}},
			{me, "POST", "/v2/transfers", `{"source":1,"destination":[]}`, "400 INVALID_REQUEST", nil},
			{me, "POST", "/v2/transfers", padded(17 << 10), "413 PAYLOAD_TOO_LARGE", nil},
			{me, "POST", "/v2/transfers", payment("0"), "422 INVALID_AMOUNT", nil},
			{me, "POST", "/v2/transfers", unsupported, "422 UNSUPPORTED_CHAIN", nil},
			{me, "POST", "/v2/transfers", body(on(sepolia, alice), on(sepolia, bob), "1", on(sepolia, bob), "", ""), "422 UNKNOWN_TOKEN", nil},
			{me, "POST", "/v2/transfers", swap, "403 CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT", nil},
			{me, "GET", at, nil, "200", nil},
			{me, "GET", at + "?full=1", nil, "400 INVALID_REQUEST", nil},
			{me, "GET", nowhere, nil, "404 NOT_FOUND", nil},
			{me, "GET", at + "/preflight", nil, "503 CHAIN_NOT_WATCHED", nil},
			{me, "GET", at + "/refund", nil, "409 NOT_REFUNDABLE", nil},
			{me, "POST", at + "/cancel", nil, "200", nil},
			{me, "POST", at + "/cancel", nil, "200", nil},
			{me, "POST", at + "/cancel?now=1", nil, "400 INVALID_REQUEST", nil},
			{me, "POST", "/v2/transfers/" + late + "/cancel", nil, "409 STATUS_CONFLICT", nil},
			{me, "POST", nowhere + "/cancel", nil, "404 NOT_FOUND", nil},
			{anyone, "POST", at + "/cancel", nil, "401 INVALID_API_KEY", nil},
			{me, "GET", at + "/cancel", nil, "405 METHOD_NOT_ALLOWED", nil},
		})
	})
	t.Run("webhooks", func(t *testing.T) {
		t.Parallel()
		key := freshKey(t)
		me, api := rawClient(t, gateway, key), apiClient(t, gateway, key)
		cursor := must(api.Events.List(t.Context(), intents.EventQuery{After: intents.Now}))(t).Next
		to := func(url string) map[string]any { return map[string]any{"url": url, "types": nil, "description": nil} }
		made := createWebhook(t, api, "http://127.0.0.1:1/hook")
		const webhooks, evt = "/v2/webhooks", "/deliveries/evt_d40dbb5d-616f-5a2a-931a-3bbb63807014"
		at, nowhere := webhooks+"/"+made.ID, webhooks+"/"+nobody
		tested := "/deliveries/" + must(api.Webhooks.Test(t.Context(), made.ID))(t).EventID
		after := func(cursor string) map[string]any { return map[string]any{"after": cursor} }
		enabled := func(is bool) map[string]any { return map[string]any{"enabled": is} }
		grace := func(seconds int) map[string]any { return map[string]any{"gracePeriod": seconds} }
		try(t, []exchange{
			{me, "GET", webhooks, nil, "200", nil},
			{me, "GET", webhooks + "?all=1", nil, "400 INVALID_REQUEST", nil},
			{me, "POST", webhooks, to("ftp://example.com"), "400 INVALID_REQUEST", nil},
			{me, "POST", webhooks, padded(17 << 10), "413 PAYLOAD_TOO_LARGE", nil},
			{me, "POST", webhooks, to("http://10.0.0.1/"), "422 URL_NOT_ALLOWED", nil},
			{me, "GET", at, nil, "200", nil},
			{me, "GET", nowhere, nil, "404 NOT_FOUND", nil},
			{me, "PATCH", at, map[string]any{"types": []string{"transfer.*"}, "description": "Books"}, "200", nil},
			{me, "PATCH", at, map[string]any{}, "400 INVALID_REQUEST", nil},
			{me, "PATCH", at, map[string]any{"url": "http://10.0.0.1/"}, "422 URL_NOT_ALLOWED", nil},
			{me, "PATCH", nowhere, enabled(true), "404 NOT_FOUND", nil},
			{me, "GET", at + "/deliveries?limit=1&status=pending", nil, "200", nil},
			{me, "GET", at + "/deliveries?limit=0", nil, "400 INVALID_REQUEST", nil},
			{me, "GET", nowhere + "/deliveries", nil, "404 NOT_FOUND", nil},
			{me, "POST", at + tested + "/retry", nil, "202", nil},
			{me, "POST", at + evt + "/retry", nil, "404 NOT_FOUND", nil},
			{me, "POST", at + "/test", padded(60 << 10), "202", nil},
			{me, "POST", at + "/test", padded(2 << 20), "413 PAYLOAD_TOO_LARGE", nil},
			{me, "POST", at + "/test?now=1", nil, "400 INVALID_REQUEST", nil},
			{me, "POST", nowhere + "/test", nil, "404 NOT_FOUND", nil},
			{me, "POST", at + "/rotate-secret", nil, "200", nil},
			{me, "POST", at + "/rotate-secret", grace(60), "200", nil},
			{me, "POST", at + "/rotate-secret", grace(-1), "400 INVALID_REQUEST", nil},
			{me, "POST", nowhere + "/rotate-secret", nil, "404 NOT_FOUND", nil},
			{me, "POST", at + "/replay", after(cursor), "202", nil},
			{me, "POST", at + "/replay", after("x"), "400 INVALID_REQUEST", nil},
			{me, "POST", nowhere + "/replay", after(cursor), "404 NOT_FOUND", nil},
			{me, "PATCH", at, enabled(false), "200", nil},
			{me, "POST", at + "/test", nil, "409 WEBHOOK_DISABLED", nil},
			{me, "POST", at + tested + "/retry", nil, "409 WEBHOOK_DISABLED", nil},
			{me, "POST", at + "/replay", after(cursor), "409 WEBHOOK_DISABLED", nil},
			{me, "PUT", at, nil, "405 METHOD_NOT_ALLOWED", nil},
			{me, "DELETE", nowhere, nil, "404 NOT_FOUND", nil},
			{me, "DELETE", at, nil, "204", nil},
		})
		another := apiClient(t, gateway, freshKey(t))
		for range 20 {
			createWebhook(t, another, "http://127.0.0.1:1/hook")
		}
		_, err := another.Webhooks.Create(t.Context(), intents.CreateWebhook{URL: "https://example.com"})
		failed(t, err, http.StatusConflict, intents.CodeTooManyWebhooks)
	})
	t.Run("session routes", func(t *testing.T) {
		t.Parallel()
		somebody := newPerson(t, running.Env().GatewayURL)
		key, expired := somebody.newKey(), somebody.newKey()
		execute(t, running.Env().DatabaseURL, `UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1`, expired.ID)
		me := somebody.client
		// object is a body of these names and values.
		object := func(pairs ...any) map[string]any {
			body := map[string]any{}
			for i := 0; i < len(pairs); i += 2 {
				body[pairs[i].(string)] = pairs[i+1] //nolint:forcetypeassert // names and values in turn
			}
			return body
		}
		of := func(id string, more ...any) map[string]any { return object(append(more, "keyId", id)...) }
		fresh := object("name", "", "email", uniqueEmail("statuses"), "password", password)
		unsigned := object("message", "x", "signature", "0x", "walletAddress", alice, "chainId", 1)
		try(t, []exchange{
			{anyone, "POST", "/auth/sign-up/email", fresh, "200", nil},
			{anyone, "POST", "/auth/sign-up/email", fresh, "200", nil},
			{anyone, "POST", "/auth/sign-in/email", object("email", fresh["email"], "password", password), "401 INVALID_EMAIL_OR_PASSWORD", nil},
			{anyone, "POST", "/auth/sign-in/email", fresh, "400 INVALID_REQUEST", nil},
			{anyone, "GET", "/auth/get-session", nil, "200", nil},
			{anyone, "GET", "/auth/sign-up/email", nil, "405 METHOD_NOT_ALLOWED", nil},
			{anyone, "POST", "/auth/sign-up/email", fresh, "403 CROSS_ORIGIN_REQUEST", []string{"Origin", "https://elsewhere.example"}},
			{anyone, "POST", "/auth/sign-up/email", `name=x`, "415 UNSUPPORTED_MEDIA_TYPE", []string{"Content-Type", "text/plain"}},
			{anyone, "POST", "/auth/sign-up/email", padded(17 << 10), "413 PAYLOAD_TOO_LARGE", nil},
			{anyone, "POST", "/auth/nothing", `{}`, "404 NOT_FOUND", nil},
			{me, "POST", "/auth/api-key/create", object("name", "x", "userId", "y"), "400 INVALID_REQUEST", nil},
			{me, "GET", "/auth/api-key/list?limit=1&offset=1&sortBy=name&sortDirection=desc", nil, "200", nil},
			{me, "GET", "/auth/api-key/list?limit=-1", nil, "400 INVALID_REQUEST", nil},
			{me, "GET", "/auth/api-key/get?id=" + key.ID, nil, "200", nil},
			{me, "GET", "/auth/api-key/get?id=" + nobody, nil, "404 NOT_FOUND", nil},
			{me, "GET", "/auth/api-key/get?id=" + key.ID + "&id=" + key.ID, nil, "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/api-key/update", of(key.ID), "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/api-key/update", of(key.ID, "name", "renamed", "enabled", true, "expiresIn", 60), "200", nil},
			{me, "POST", "/auth/api-key/update", of(key.ID, "expiresIn", nil), "200", nil},
			{me, "POST", "/auth/api-key/update", of(nobody, "enabled", true), "404 NOT_FOUND", nil},
			{me, "POST", "/auth/api-key/rotate", of(expired.ID), "409", nil},
			{me, "POST", "/auth/api-key/rotate", of(nobody), "404 NOT_FOUND", nil},
			{me, "POST", "/auth/api-key/rotate", of(key.ID, "gracePeriod", 86401), "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/api-key/rotate", of(key.ID, "gracePeriod", 60), "200", nil},
			{me, "POST", "/auth/api-key/rotate", of(key.ID, "gracePeriod", 60), "409 KEY_ROTATED", nil},
			{me, "POST", "/auth/api-key/update", of(key.ID, "expiresIn", 3600), "409", nil},
			{me, "POST", "/auth/api-key/delete", of(key.ID), "200", nil},
			{me, "POST", "/auth/api-key/delete", of(key.ID), "404 NOT_FOUND", nil},
			{me, "GET", "/auth/list-sessions", nil, "200", nil},
			{me, "POST", "/auth/revoke-session", object("token", nobody), "200", nil},
			{me, "POST", "/auth/revoke-other-sessions", object(), "200", nil},
			{me, "POST", "/auth/siwe/nonce", object("walletAddress", alice, "chainId", 1), "200", nil},
			{me, "POST", "/auth/siwe/nonce", object("walletAddress", "0x1"), "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/siwe/verify", unsigned, "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/sign-in/oauth2", object("providerId", "oidc"), "404", nil},
			{me, "GET", "/auth/oauth2/callback/oidc?code=x&state=y", nil, "404", nil},
			{me, "GET", "/auth/list-accounts", nil, "200", nil},
			{me, "POST", "/auth/oauth2/link", object("providerId", "oidc"), "404", nil},
			{me, "POST", "/auth/siwe/link", unsigned, "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/unlink-account", object("providerId", "siwe"), "400", nil},
			{me, "POST", "/auth/change-password", object("currentPassword", "wrong horse battery", "newPassword", "staple correct horse"), "400 INVALID_PASSWORD", nil},
			{me, "POST", "/auth/change-password", object("currentPassword", password, "newPassword", password), "200", nil},
			{me, "POST", "/auth/request-password-reset", object("email", "nobody"), "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/request-password-reset", object("email", "nobody@example.com", "redirectTo", "/"), "200", nil},
			{me, "POST", "/auth/reset-password", object("token", "x", "newPassword", "staple correct horse"), "400 INVALID_TOKEN", nil},
			{me, "POST", "/auth/send-verification-email", object("email", somebody.email), "400 EMAIL_ALREADY_VERIFIED", nil},
			{me, "GET", "/auth/verify-email?token=x", nil, "401 INVALID_TOKEN", nil},
			{me, "GET", "/auth/verify-email?token=x&callbackURL=https://elsewhere.example", nil, "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/change-email", object("newEmail", somebody.email), "400 INVALID_REQUEST", nil},
			{me, "POST", "/auth/change-email", object("newEmail", "new-"+somebody.email, "callbackURL", "/app"), "200", nil},
			{me, "POST", "/auth/delete-user", object("password", "wrong horse battery"), "400 INVALID_PASSWORD", nil},
			{me, "POST", "/auth/revoke-sessions", object(), "200", nil},
			{me, "GET", "/auth/get-session", nil, "200", nil},
			{me, "GET", "/auth/list-sessions", nil, "401 UNAUTHORIZED", nil},
		})
	})
}
