package upstream_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// startHAProxy runs a real HAProxy before a core until the test ends, and returns its URL. It writes header names in lower case.
func startHAProxy(t *testing.T, core *core) string {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is not installed")
		}
		t.Skip("haproxy is not installed; on Debian: apt-get install haproxy")
	}
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	text := fmt.Sprintf(`
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend gateways
    bind 127.0.0.1:%d
    default_backend cores
backend cores
    server core %s
`, port, strings.TrimPrefix(core.URL, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := embedded.StartProcess(embedded.Command{
		Name: "haproxy", Path: program, Args: []string{"-db", "-f", config}, Output: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// Header names are case-insensitive (RFC 9110 section 5.1); proxies such as HAProxy and Envoy write them in lower case.
func TestResponseHeaders_BehindHAProxy(t *testing.T) {
	t.Parallel()
	always := http.Header{
		"Allow":                  {"GET, POST"},
		"Cache-Control":          {"no-store"},
		"Content-Encoding":       {"identity"},
		"Content-Language":       {"en"},
		"Content-Type":           {"application/json"},
		"Deprecation":            {"@1735689600"},
		"Etag":                   {`W/"1"`},
		"Idempotent-Replayed":    {"true"},
		"Last-Modified":          {"Sat, 29 Oct 1994 19:43:31 GMT"},
		"Link":                   {`</v2/transfers?cursor=a>; rel="next"`, `</v2/transfers>; rel="first"`},
		"Location":               {"/v2/transfers/1"},
		"Retry-After":            {"7"},
		"Sunset":                 {"Wed, 31 Dec 2031 23:59:59 GMT"},
		"Vary":                   {"Accept-Encoding", "Origin"},
		"X-Content-Type-Options": {"nosniff"},
	}
	ofSessions := http.Header{
		"Clear-Site-Data":              {`"cookies"`},
		"Content-Disposition":          {"attachment"},
		"Content-Security-Policy":      {"default-src 'none'"},
		"Cross-Origin-Embedder-Policy": {"require-corp"},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-site"},
		"Permissions-Policy":           {"camera=()"},
		"Referrer-Policy":              {"same-origin"},
		"Set-Cookie":                   {"a=1; Path=/; HttpOnly", "b=2"},
		"Strict-Transport-Security":    {"max-age=31536000"},
		"X-Frame-Options":              {"DENY"},
	}
	withheld := http.Header{
		"Server": {"core"}, "Www-Authenticate": {"Basic"}, "X-Account-Id": {"1"}, "X-Request-Id": {"core's own"}, "Access-Control-Allow-Origin": {"*"},
	}
	compared := map[string]bool{}
	for name := range always {
		compared[name] = false
	}
	for name := range ofSessions {
		compared[name] = true
	}
	if diff := cmp.Diff(upstream.ResponseHeaders, compared); diff != "" {
		t.Fatalf("headers that core may send (-forward +compared here):\n%s", diff)
	}
	core := startCore(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, headers := range []http.Header{always, ofSessions, withheld} {
			maps.Copy(w.Header(), headers)
		}
		fmt.Fprint(w, "{}")
	})
	c := newClient(t, settings{}, startHAProxy(t, core))
	asynctest.Eventually(t, "HAProxy passes requests on", func() bool { return c.answer(read) == "{}" })
	for _, session := range []bool{false, true} {
		response, err := c.do(request{method: http.MethodGet, session: session})
		if err != nil {
			t.Fatal(err)
		}
		got := http.Header{}
		for name, value := range response.Header.All() {
			got.Add(string(name), string(value))
		}
		want := always.Clone()
		if session {
			maps.Copy(want, ofSessions)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("session %t (-want +got):\n%s", session, diff)
		}
	}
}
