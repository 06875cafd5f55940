package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
)

// HEAD is answered as GET on every route, without the body, and leaves the connection to the next request.
func TestHead_EveryRoute(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 60<<10)
	answers := map[string]http.HandlerFunc{
		"short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", `"1"`)
			fmt.Fprint(w, `["short"]`)
		},
		"in chunks": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "[")
			_ = http.NewResponseController(w).Flush()
			fmt.Fprint(w, "]")
		},
		"long": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			fmt.Fprint(w, long)
		},
		"long, in chunks": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long) },
		"without a body":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"a refusal": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code":"NOT_FOUND"}`)
		},
		"a session that ended": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"code":"UNAUTHENTICATED"}`)
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var others atomic.Int64
			core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					others.Add(1)
				}
				w.Header().Set("Content-Type", "application/json")
				answer(w, r)
			})
			g := start(t, core)
			key := unlimitedKey(core) // each route takes three requests
			c := g.dial(t)
			defer c.Close()
			for _, pattern := range edge.ReadPatterns() {
				target := strings.NewReplacer("{id}", "1", "{eventId}", "evt_1", "*", "get-session").Replace(pattern)
				var heads []response
				for _, method := range []string{"GET", "HEAD", "GET"} {
					c.write(t, request(method, target, key, ""))
					got := c.read(t, method)
					got.Header.Del("Ratelimit")
					heads = append(heads, headOf(got))
					if method == "HEAD" && got.Body != "" {
						t.Errorf("HEAD %s has a body", target)
					}
				}
				if diff := cmp.Diff(heads[0], heads[1]); diff != "" {
					t.Errorf("HEAD %s (-GET +HEAD):\n%s", target, diff)
				}
				if diff := cmp.Diff(heads[0], heads[2]); diff != "" {
					t.Errorf("GET %s after it:\n%s", target, diff)
				}
			}
			if n := others.Load(); n > 0 {
				t.Errorf("core got %d requests that are no GET", n)
			}
		})
	}
}
