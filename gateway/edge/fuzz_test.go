package edge_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/edge"
)

// Whatever passes the path check reads the same to every parser: nothing to decode, nothing to clean.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"/v2/tokens", "/v2/transfers/1?limit=2", "/v2/../health", "/v2/%2e%2e/health", "//v2", "/v2;x", "/v2#", "/\\", "/v2/tokens?a=%zz",
		"http://a/v2", "*", "", "/v2/transfers/1/cancel", "/.", "/a/..", "/?", "/v2/\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if !edge.TargetPasses([]byte(target)) {
			return
		}
		path, query, _ := strings.Cut(target, "?")
		parsed, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatalf("%q passes, but net/url: %v", target, err)
		}
		if parsed.Path != path || parsed.RawQuery != query || parsed.EscapedPath() != path {
			t.Errorf("%q reads as path %q and query %q to net/url", target, parsed.Path, parsed.RawQuery)
		}
		var uri fasthttp.URI
		if err := uri.Parse([]byte("a"), []byte(target)); err != nil {
			t.Fatalf("%q passes, but fasthttp: %v", target, err)
		}
		if got := string(uri.Path()); got != path {
			t.Errorf("%q reads as path %q to fasthttp", target, got)
		}
		keyed := strings.HasPrefix(path, "/v2")
		switch route := edge.RouteOf([]byte(path)); {
		case keyed && !strings.HasPrefix(route, "/v2/") && path != "/v2/health" && path != "/v2/openapi.json":
			t.Errorf("%q has the route %s", path, route)
		case !keyed && strings.HasPrefix(route, "/v2"):
			t.Errorf("%q has the route %s", path, route)
		}
	})
}

// Whatever header block passes the guard reads the same to fasthttp and to net/http: same names, same values.
func FuzzHeaderBlock(f *testing.F) {
	for _, seed := range []string{
		"", "X-Api-Key: a\r\n", "A: b\r\n c\r\n", "A: b\nC: d\r\n", "A : b\r\n", ": b\r\n", "A\r\n", "A: \x00\r\n", "A: b\rc\r\n",
		"Content-Length: 2\r\nContent-Length: 2\r\n", "X-Api-Key: a\r\nx-api-key: b\r\n", "A:\tb \r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, block string) {
		raw := []byte("Host: a\r\n" + block + "\r\n")
		if bytes.Contains([]byte(block), []byte("\r\n\r\n")) || strings.HasPrefix(block, "\r\n") || !edge.HeaderBlockPasses(raw) {
			return
		}
		text := "GET / HTTP/1.1\r\n" + string(raw)
		var ours fasthttp.RequestHeader
		if err := ours.Read(bufio.NewReaderSize(strings.NewReader(text), 64<<10)); err != nil {
			return // refused all the same
		}
		theirs, err := http.ReadRequest(bufio.NewReaderSize(strings.NewReader(text), 64<<10))
		if err != nil {
			return // net/http is stricter about lengths; core refuses
		}
		for name, values := range theirs.Header {
			if name == "Cookie" || name == "Connection" {
				continue // kept apart by fasthttp, and never passed on as they came
			}
			got := ours.PeekAll(name)
			if len(got) < len(values) {
				t.Fatalf("%s: fasthttp has %q, net/http %q", name, got, values)
			}
			for i, value := range values {
				if !strings.EqualFold(string(got[i]), value) {
					t.Errorf("%s: fasthttp has %q, net/http %q", name, got[i], value)
				}
			}
		}
	})
}
