package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

// Each status of the webhooks' operations can be had; the transport sees to it that the answers are as documented.
func TestWebhooks_EveryStatus(t *testing.T) {
	t.Parallel()
	me := apiClient(t, freshKey(t))
	cursor := expect[eventPage](t, me.do(http.MethodGet, "/v2/events?after=now", nil), http.StatusOK).Next
	create := func(url string) map[string]any { return map[string]any{"url": url, "types": nil, "description": nil} }
	made := createWebhook(t, me, "http://127.0.0.1:1/hook")
	const webhooks, evt = "/v2/webhooks", "evt_d40dbb5d-616f-5a2a-931a-3bbb63807014"
	at, nowhere := webhooks+"/"+made.ID, webhooks+"/01a1fc70-1b2c-7d3e-8f40-516273849596"
	tested := expect[struct{ EventID string }](t, me.do(http.MethodPost, at+"/test", nil), http.StatusAccepted)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{"GET", webhooks, nil, 200, ""},
		{"GET", webhooks + "?all=1", nil, 400, "INVALID_REQUEST"},
		{"POST", webhooks, create("ftp://example.com"), 400, "INVALID_REQUEST"},
		{"POST", webhooks, `x`, 400, "INVALID_REQUEST"},
		{"POST", webhooks, `"` + strings.Repeat("x", 17<<10) + `"`, 413, "PAYLOAD_TOO_LARGE"},
		{"POST", webhooks, create("http://10.0.0.1/"), 422, "URL_NOT_ALLOWED"},
		{"GET", at, nil, 200, ""},
		{"GET", nowhere, nil, 404, "NOT_FOUND"},
		{"PATCH", at, map[string]any{"types": []string{"transfer.*"}, "description": "Books"}, 200, ""},
		{"PATCH", at, map[string]any{}, 400, "INVALID_REQUEST"},
		{"PATCH", at, map[string]any{"url": "http://10.0.0.1/"}, 422, "URL_NOT_ALLOWED"},
		{"PATCH", nowhere, map[string]any{"enabled": true}, 404, "NOT_FOUND"},
		{"GET", at + "/deliveries?limit=1&status=pending", nil, 200, ""},
		{"GET", at + "/deliveries?limit=0", nil, 400, "INVALID_REQUEST"},
		{"GET", nowhere + "/deliveries", nil, 404, "NOT_FOUND"},
		{"POST", at + "/deliveries/" + tested.EventID + "/retry", nil, 202, ""},
		{"POST", at + "/deliveries/" + evt + "/retry", nil, 404, "NOT_FOUND"},
		{"POST", at + "/test", `"` + strings.Repeat("x", 60<<10) + `"`, 202, ""},
		{"POST", at + "/test", `"` + strings.Repeat("x", 2<<20) + `"`, 413, "PAYLOAD_TOO_LARGE"},
		{"POST", at + "/test?now=1", nil, 400, "INVALID_REQUEST"},
		{"POST", nowhere + "/test", nil, 404, "NOT_FOUND"},
		{"POST", at + "/rotate-secret", nil, 200, ""},
		{"POST", at + "/rotate-secret", map[string]any{"gracePeriod": 60}, 200, ""},
		{"POST", at + "/rotate-secret", map[string]any{"gracePeriod": -1}, 400, "INVALID_REQUEST"},
		{"POST", nowhere + "/rotate-secret", nil, 404, "NOT_FOUND"},
		{"POST", at + "/replay", map[string]any{"after": cursor}, 202, ""},
		{"POST", at + "/replay", map[string]any{"after": "x"}, 400, "INVALID_REQUEST"},
		{"POST", nowhere + "/replay", map[string]any{"after": cursor}, 404, "NOT_FOUND"},
		{"PATCH", at, map[string]any{"enabled": false}, 200, ""},
		{"POST", at + "/test", nil, 409, "WEBHOOK_DISABLED"},
		{"POST", at + "/deliveries/" + tested.EventID + "/retry", nil, 409, "WEBHOOK_DISABLED"},
		{"POST", at + "/replay", map[string]any{"after": cursor}, 409, "WEBHOOK_DISABLED"},
		{"PUT", at, nil, 405, "METHOD_NOT_ALLOWED"},
		{"DELETE", nowhere, nil, 404, "NOT_FOUND"},
		{"DELETE", at, nil, 204, ""},
	} {
		a := me.do(c.method, c.path, c.body)
		if a.Status != c.status || c.code != "" && !strings.Contains(string(a.Body), `"code":"`+c.code+`"`) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, a.Status, a.Body, c.status, c.code)
		}
	}
}

// The 21st webhook of an account is refused as documented.
func TestWebhooks_TooMany(t *testing.T) {
	t.Parallel()
	me := apiClient(t, freshKey(t))
	for range 20 {
		createWebhook(t, me, "http://127.0.0.1:1/hook")
	}
	got := expect[failure](t, me.do(http.MethodPost, "/v2/webhooks", map[string]any{"url": "https://example.com"}), http.StatusConflict)
	if got.Code != "TOO_MANY_WEBHOOKS" {
		t.Errorf("the 21st webhook: %+v", got)
	}
}
