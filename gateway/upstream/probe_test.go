package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
)

func TestProbe_EjectsAndRestores(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int64 // of the probe's answer, 0 for none
		down   bool
		logged string
	}{
		"hangs": {0, true, ""}, "drains or lacks its database": {http.StatusServiceUnavailable, false, "with 503"},
		"has another secret": {http.StatusUnauthorized, false, "GATEWAY_CORE_SECRET is neither its CORE_GATEWAY_SECRET nor its CORE_GATEWAY_SECRET_PREVIOUS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand := startReady(t)
			s := newSet(t, stand.URL)
			core := s.All()[0]
			s.probe(t)
			asynctest.Eventually(t, "it is probed", func() bool { return stand.probes.Load() > 0 })
			epoch := core.Generation()
			stand.status.Store(c.status)
			began := time.Now()
			asynctest.Eventually(t, "it is ejected", func() bool { return !core.Up() })
			t.Logf("ejected %s after it began", time.Since(began))
			if core.Down() != c.down {
				t.Errorf("down: %t", core.Down())
			}
			asynctest.Eventually(t, "its idle connections are doubted", func() bool { return core.Generation() != epoch })
			asynctest.Eventually(t, "it is logged", func() bool { return strings.Contains(s.log.String(), `msg="core ejected"`) })
			s.expectMetrics(t, core, 0, 1)
			stand.status.Store(http.StatusNoContent)
			began = time.Now()
			asynctest.Eventually(t, "it is back", core.Up)
			t.Logf("back %s after it was over", time.Since(began))
			asynctest.Eventually(t, "that is logged", func() bool { return strings.Contains(s.log.String(), `msg="core up again"`) })
			s.expectMetrics(t, core, 1, 1)
			if got := strings.Count(s.log.String(), "\n"); got != 2 || !strings.Contains(s.log.String(), c.logged) {
				t.Errorf("%d lines are logged:\n%s", got, s.log)
			}
		})
	}
}

func (s set) expectMetrics(t *testing.T, core *upstream.Core, up, ejected int) {
	t.Helper()
	want := fmt.Sprintf(`
# HELP intents_gateway_core_ejections_total Times a core was ejected because it could not be reached, closed a response early, timed out or failed its probe. A rise means that the core, or the network to it, fails.
# TYPE intents_gateway_core_ejections_total counter
intents_gateway_core_ejections_total{core=%q} %d
# HELP intents_gateway_core_up 1 while requests are sent to the core, 0 while it is ejected. While all cores are at 0, requests are sent to all of them.
# TYPE intents_gateway_core_up gauge
intents_gateway_core_up{core=%q} %d
`, core.Address, ejected, core.Address, up)
	if err := testutil.GatherAndCompare(s.registry, strings.NewReader(want), "intents_gateway_core_up", "intents_gateway_core_ejections_total"); err != nil {
		t.Error(err)
	}
}

// What one request came to is no proof: a core that answers its probe is back at once, and nobody is told.
func TestMarkFailed_ProbesAtOnce(t *testing.T) {
	t.Parallel()
	stand := startReady(t)
	s := newSet(t, stand.URL)
	core := s.All()[0]
	s.probe(t)
	asynctest.Eventually(t, "it is probed", func() bool { return stand.probes.Load() > 0 })
	epoch := core.Generation()
	began := time.Now()
	core.MarkFailed()
	asynctest.Eventually(t, "it is back", core.Up)
	t.Logf("back after %s", time.Since(began))
	if core.Generation() != epoch {
		t.Error("its idle connections are given up")
	}
	if log := s.log.String(); log != "" {
		t.Errorf("it is logged: %s", log)
	}
	before := stand.probes.Load()
	core.ProbeNow()
	asynctest.Eventually(t, "it is probed again", func() bool { return stand.probes.Load() > before })
}

// A core of another version, which does not know the question, answers nevertheless; the stand-in says that the response is core's own.
func TestProbe_UnknownEndpoint(t *testing.T) {
	t.Parallel()
	stand := startReady(t)
	stand.status.Store(http.StatusNotFound)
	s := newSet(t, stand.URL)
	s.probe(t)
	asynctest.Eventually(t, "it is probed twice", func() bool { return stand.probes.Load() > 1 })
	if !s.All()[0].Up() {
		t.Error("it is ejected")
	}
}

// A connection that core closes as the next probe is sent on it says nothing of core: the probe is sent again on a new one.
func TestProbe_ConnectionBreaks(t *testing.T) {
	t.Parallel()
	var answered, broken atomic.Int64
	var used sync.Map
	stand := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			broken.Add(1)
			panic(http.ErrAbortHandler)
		}
		answered.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(stand.Close)
	s := newSet(t, stand.URL)
	s.probe(t)
	asynctest.Eventually(t, "probes break", func() bool { return broken.Load() > 1 && answered.Load() > 2 })
	if log := s.log.String(); log != "" || !s.All()[0].Up() {
		t.Errorf("it is ejected: %s", log)
	}
}

func TestSet_TLS(t *testing.T) {
	t.Parallel()
	s := newSet(t, "http://plain", "https://core:8443")
	if s.TLS(s.All()[0]) != nil {
		t.Error("a plain core gets TLS")
	}
	if diff := cmp.Diff("core", s.TLS(s.All()[1]).ServerName); diff != "" {
		t.Error(diff)
	}
}
