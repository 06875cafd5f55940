package upstream_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/wire"
)

// outcomes are the statuses of a response to a POST, those of a batch as a whole among them.
var outcomes = []int{200, 201, 307, 400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504}

// Whatever a response says, a POST without an Idempotency-Key is sent again only if core itself has refused it, and one with a key at most once
// more if a proxy has answered: alone and in a batch by the same rule.
func TestOutcome_SentAgain(t *testing.T) {
	t.Parallel()
	for _, status := range outcomes {
		for _, mark := range []string{"", wire.CoreAnswered, wire.CoreRefused} {
			for _, grouped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d, %q, grouped %t", status, mark, grouped), func(t *testing.T) {
					t.Parallel()
					checkOutcome(t, status, mark, grouped)
				})
			}
		}
	}
}

// checkOutcome has the first response to requests without a key and with one be the given one. Every later one is core's 201.
func checkOutcome(t *testing.T, status int, mark string, grouped bool) {
	t.Helper()
	var mu sync.Mutex
	sent, given := map[string]int{}, map[string]bool{}
	c := startCrowd(t, settings{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	served := c.core.Config.Handler
	c.core.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids := []string{idOf(r)}
		if r.URL.Path == wire.PathBatch {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			ids = idsIn(body)
		}
		if strings.HasPrefix(ids[0], "permit") || r.URL.Path == wire.PathReady {
			served.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		first := (r.URL.Path == wire.PathBatch) == grouped
		for _, id := range ids {
			sent[id]++
			first = first && sent[id] == 1
		}
		for _, id := range ids {
			given[id] = given[id] || first
		}
		mu.Unlock()
		if !first {
			served.ServeHTTP(w, r)
			return
		}
		if mark != "" {
			w.Header().Set(wire.HeaderCore, mark)
		}
		w.WriteHeader(status)
	})
	var requests []request
	for n := range 8 {
		requests = append(requests, batched(fmt.Sprintf("plain%d", n)), repeated(fmt.Sprintf("keyed%d", n)))
		requests[2*n].batch, requests[2*n+1].batch = grouped, grouped
	}
	c.all(t, requests...)

	plain, keyed := 1, 2
	switch {
	case mark == wire.CoreRefused && grouped && status == http.StatusNotFound:
		plain = 2 // alone
	case mark == wire.CoreRefused, mark == wire.CoreAnswered && !grouped, !grouped && status < 300:
		keyed = 1 // there is no other core, or the response is the request's
	}
	again := 0
	for id, times := range sent {
		again += times - 1
		want := plain
		if strings.HasPrefix(id, "keyed") {
			want = keyed
		}
		if given[id] && times != want {
			t.Errorf("%s was sent %d times, want %d", id, times, want)
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(given)), true) {
		t.Error("the response was given to none")
	}
	if got := c.client.retries(t); got != float64(again) {
		t.Errorf("%v requests count as sent again, want %d", got, again)
	}
}

// A core that refuses a batch because it is overloaded gets none of its requests alone; another core gets them together.
func TestOutcome_BatchRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			c := startCrowd(t, settings{}, name("carried out"))
			var alone atomic.Int64
			served := c.core.Config.Handler
			c.core.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == wire.PathBatch:
					w.Header().Set(wire.HeaderCore, wire.CoreRefused)
					w.WriteHeader(status)
				case r.URL.Path != wire.PathReady && !strings.HasPrefix(idOf(r), "permit"):
					alone.Add(1)
					fallthrough
				default:
					served.ServeHTTP(w, r)
				}
			})
			var requests []request
			for n := range wire.MaxBatchRequests {
				requests = append(requests, batched(fmt.Sprint(n)))
			}
			refused := 0
			for _, got := range c.all(t, requests...) {
				if strings.HasPrefix(got, upstream.ErrUnreachable.Error()) {
					refused++
				}
			}
			// One that finds nobody waiting is sent alone, as ever.
			if sent := int(alone.Load()); sent > 2*permits || refused != len(requests)-sent {
				t.Errorf("of %d requests %d were sent alone and %d refused", len(requests), sent, refused)
			}
		})
	}
}

// A proxy's response to a request that cannot be sent again is no response of core's: not even its page gets to the client.
func TestOutcome_ProxyAnswers(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{401: upstream.ErrBroken, 403: upstream.ErrBroken, 502: upstream.ErrBroken, 503: upstream.ErrBroken, 504: upstream.ErrTimeout} {
		front := startCore(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del(wire.HeaderCore)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<h1>Gateway</h1>")
		})
		c := newClient(t, settings{unprobed: true}, front.URL)
		if _, err := c.do(write); !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", status, err, want)
		}
		if front.hits.Load() != 1 {
			t.Errorf("%d: sent %d times", status, front.hits.Load())
		}
	}
}
