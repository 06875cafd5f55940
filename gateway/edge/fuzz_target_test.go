package edge_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/edge"
)

// Whatever passes the path check reads the same to every parser: nothing to decode, nothing to clean.
func FuzzTarget(f *testing.F) {
	for _, rule := range targetRules {
		for _, row := range rule.rows {
			if target := strings.Split(row.sent, " "); len(row.sent) < 1<<10 {
				f.Add(target[1])
			}
		}
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
