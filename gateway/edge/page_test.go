package edge_test

import (
	"strings"
	"testing"

	"intents.internal/gateway/coretest"
)

// What the gateway itself says on the console's paths is a page to read, and JSON everywhere else.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	long := "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1048576\r\n"
	for name, test := range map[string]struct {
		raw    string
		status int
		page   bool
		says   string
	}{
		"a name of 1 MB":         {request("POST", "/console/keys", long, ""), 413, true, "The body must not be longer than 65536 bytes."},
		"a method no page has":   {request("DELETE", "/console/keys", "", ""), 405, true, "This path does not have this method."},
		"an error with an id":    {request("DELETE", "/console/keys", "X-Request-Id: my.request-1\r\n", ""), 405, true, "<code>my.request-1</code>"},
		"the same for a program": {request("POST", "/auth/api-key/create", long, ""), 413, false, "The body must not be longer than 65536 bytes."},
	} {
		got := g.send(t, test.raw)
		isPage := got.Header.Get("Content-Type") == "text/html; charset=utf-8" && strings.HasPrefix(got.Body, "<!doctype html>") &&
			strings.Contains(got.Header.Get("Content-Security-Policy"), "default-src 'none'")
		if got.Status != test.status || isPage != test.page || !strings.Contains(got.Body, test.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	core.Stop()
	if got := g.send(t, request("GET", "/console", "", "")); got.Status != 503 || !strings.Contains(got.Body, "<p>The service does not answer now") {
		t.Errorf("without core: %+v", got)
	}
}
