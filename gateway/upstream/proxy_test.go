package upstream_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// startHAProxy runs a real HAProxy before a core until the test ends, and returns its URL. It writes header names in lower case, and answers 504
// for a core that takes longer than the timeout.
func startHAProxy(t *testing.T, core *core, timeout time.Duration) string {
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
    timeout server %dms
frontend gateways
    bind 127.0.0.1:%d
    default_backend cores
backend cores
    server core %s
`, timeout.Milliseconds(), port, strings.TrimPrefix(core.URL, "http://"))
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
		"Preference-Applied":     {"return=minimal"},
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
	c := newClient(t, settings{}, startHAProxy(t, core, 30*time.Second))
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

// A proxy that answers 504 while a slow core carries the requests out makes no request without an Idempotency-Key two, alone or in a batch, and
// whoever was not told the result is told that it is unknown. With a key there is a second attempt, which core answers from the first.
func TestOutcome_BehindHAProxy(t *testing.T) {
	t.Parallel()
	const timeout, clients, rounds = 100 * time.Millisecond, 32, 10
	var mu sync.Mutex
	carriedOut := map[string]int{}
	core := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		carriedOut[idOf(r)]++
		mu.Unlock()
		if strings.HasSuffix(idOf(r), "3") { // as all commits are while the disk is busy
			pause(t, 3*timeout)
		}
		fmt.Fprint(w, "created")
	})
	core.batches.Store(true)
	c := newClient(t, settings{}, startHAProxy(t, core, timeout))
	asynctest.Eventually(t, "the core is known to serve batches", func() bool { return c.set.All()[0].Batches() })
	if answer := c.answer(batched("1-lone-3")); answer != upstream.ErrTimeout.Error() {
		t.Errorf("alone: %s", answer)
	}
	answers := map[string]int{} // a batch that core has begun to answer is broken off, any other one gets the proxy's 504
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			for round := range rounds {
				r := batched(fmt.Sprintf("%d-%d", n, round))
				if n%4 == 0 {
					r = repeated(r.id)
				}
				answer := c.answer(r)
				mu.Lock()
				answers[answer]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	twice := 0
	for id, times := range carriedOut {
		var n int
		_, _ = fmt.Sscanf(id, "%d-", &n)
		switch keyed := n%4 == 0; {
		case times > 1 && !keyed:
			t.Errorf("%s was carried out %d times", id, times)
		case times > 2:
			t.Errorf("%s was sent %d times", id, times)
		case times == 2:
			twice++
		}
	}
	if answers["created"] == clients*rounds || len(carriedOut) != clients*rounds+1 {
		t.Errorf("the proxy has stopped nobody: %v, %d requests", answers, len(carriedOut))
	}
	if retries := c.retries(t); retries != float64(twice) {
		t.Errorf("%v requests count as sent again, want %d", retries, twice)
	}
	t.Logf("answers: %v; sent again: %d", answers, twice)
}
