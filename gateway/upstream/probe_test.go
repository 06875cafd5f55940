package upstream_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"intents.internal/gateway/cores"
	"intents.internal/gateway/upstream"
	"intents.internal/pkg/wire"
)

// What a core is by the answer to its probe. One of another version, which does not know the question, is ready: the response is core's own.
func TestProbe_State(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int // of the probe's answer, 0 for none
		mark   string
		want   cores.State
		reason string
	}{
		"ready":                        {status: http.StatusNoContent, want: cores.Up},
		"does not know the endpoint":   {status: http.StatusNotFound, mark: wire.CoreAnswered, want: cores.Up},
		"hangs":                        {want: cores.Down, reason: "did not answer its probe within"},
		"drains or lacks its database": {status: http.StatusServiceUnavailable, mark: wire.CoreAnswered, want: cores.Draining, reason: "with 503"},
		"has another secret": {
			status: http.StatusUnauthorized, mark: wire.CoreRefused, want: cores.Draining,
			reason: "GATEWAY_CORE_SECRET is neither its CORE_GATEWAY_SECRET nor its CORE_GATEWAY_SECRET_PREVIOUS",
		},
		"a proxy demands credentials": {status: http.StatusUnauthorized, want: cores.Draining, reason: "a proxy before the core demands credentials"},
		"a proxy has no core":         {status: http.StatusBadGateway, want: cores.Draining, reason: "answered its probe with 502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand := startCore(t, nil)
			stand.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != wire.PathReady || r.Header.Get(wire.HeaderGatewaySecret) != "hush" || r.Host != strings.TrimPrefix(stand.URL, "http://") {
					t.Errorf("%s of %s with the secret %q", r.URL, r.Host, r.Header.Get(wire.HeaderGatewaySecret))
				}
				if c.status == 0 {
					<-r.Context().Done()
					return
				}
				if c.mark != "" {
					w.Header().Set(wire.HeaderCore, c.mark)
				}
				w.WriteHeader(c.status)
			})
			client := newClient(t, settings{unprobed: true, options: upstream.Options{Secret: "hush"}}, stand.URL)
			got, err := client.set.All()[0].Transport.Probe(t.Context())
			if got != c.want || (err == nil) != (c.want == cores.Up) || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("the core is %d, want %d: %v", got, c.want, err)
			}
		})
	}
}

// A connection that core closes as the next probe is sent on it says nothing of core: the probe is sent again on a new one.
func TestProbe_ConnectionBreaks(t *testing.T) {
	t.Parallel()
	var broken atomic.Int64
	var used sync.Map
	stand := startCore(t, nil)
	stand.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			broken.Add(1)
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	core := newClient(t, settings{unprobed: true}, stand.URL).set.All()[0]
	for n := range 3 {
		if got, err := core.Transport.Probe(t.Context()); got != cores.Up || broken.Load() != int64(n) {
			t.Errorf("after %d probes, %d of which broke, the core is %d: %v", n, broken.Load(), got, err)
		}
	}
}
