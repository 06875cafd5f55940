package upstream_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// readyCore is a stand-in that answers probes with a status, or not at all where that is 0.
type readyCore struct {
	*httptest.Server
	status atomic.Int64
	probes atomic.Int64
	// host is the last probe's.
	host atomic.Value
}

func startReady(t *testing.T) *readyCore {
	t.Helper()
	c := &readyCore{}
	c.status.Store(http.StatusNoContent)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wire.PathReady || r.Header.Get(wire.HeaderGatewaySecret) != "hush" {
			t.Errorf("%s with the secret %q", r.URL, r.Header.Get(wire.HeaderGatewaySecret))
		}
		c.host.Store(r.Host)
		c.probes.Add(1)
		status := int(c.status.Load())
		if status == 0 {
			<-r.Context().Done()
			return
		}
		mark := wire.CoreAnswered
		if status == http.StatusUnauthorized {
			mark = wire.CoreRefused
		}
		w.Header().Set(wire.HeaderCore, mark)
		w.WriteHeader(status)
	}))
	t.Cleanup(c.Close)
	return c
}

type set struct {
	*upstream.Set
	client   *upstream.Client
	registry *prometheus.Registry
	log      *asynctest.Buffer
}

// newSet knows the cores and does not probe them.
func newSet(tb testing.TB, all ...string) set {
	tb.Helper()
	return newNamedSet(tb, nil, all...)
}

// newNamedSet is the same with a resolver, nil for the system's.
func newNamedSet(tb testing.TB, n *names, all ...string) set {
	tb.Helper()
	s := set{registry: prometheus.NewRegistry(), log: &asynctest.Buffer{}}
	o := upstream.Options{Secret: "hush", MaxConns: 1, Log: slog.New(slog.NewTextHandler(s.log, nil)), Metrics: s.registry}
	if n != nil {
		o.Resolve = n.resolve
	}
	for _, text := range all {
		u, err := url.Parse(text)
		if err != nil {
			tb.Fatal(err)
		}
		o.URLs = append(o.URLs, u)
	}
	s.client = upstream.New(o)
	s.Set = s.client.Cores()
	tb.Cleanup(s.client.Close)
	return s
}

// probe probes until the test ends.
func (s set) probe(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.client.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

func TestPick(t *testing.T) {
	t.Parallel()
	s := newSet(t, "http://a:1", "http://b:1", "http://c:1")
	a, b, c := s.All()[0], s.All()[1], s.All()[2]
	var none upstream.Tried
	picked := func(tried upstream.Tried) (names string) {
		seen := map[string]bool{}
		for range 30 {
			if core := s.Pick(tried); core != nil {
				seen[core.Address] = true
			}
		}
		for _, core := range s.All() {
			if seen[core.Address] {
				names += core.URL.Hostname()
			}
		}
		return names
	}
	expect := func(when string, tried upstream.Tried, want string) {
		t.Helper()
		if got := picked(tried); got != want {
			t.Errorf("%s: %q is picked, want %q", when, got, want)
		}
	}
	expect("when all are as busy", none, "abc")
	a.Begin()
	expect("when a is busy", none, "bc")
	b.Begin()
	c.Begin()
	c.Begin()
	expect("when c is busiest", none, "ab")

	var tried upstream.Tried
	tried.Exclude(a)
	expect("after a refused", tried, "b")
	tried.MarkFailed(b)
	expect("after b broke off too", tried, "c")
	c.MarkFailed()
	expect("with c ejected", tried, "b")
	tried.Exclude(b)
	expect("after b refused as well", tried, "c")
	tried.Exclude(c)
	expect("after all refused", tried, "")
	expect("for another request", none, "ab")
	a.MarkUnreachable(io.EOF)
	expect("with a ejected too", none, "b")
	b.MarkUnreachable(io.EOF)
	expect("with all ejected", none, "ab") // the least busy, as ever
	if s.OtherUp(a) || !a.Down() || c.Down() || a.Up() || c.Up() {
		t.Error("what cannot be reached is down, what broke off is only ejected, and neither is up")
	}
}

func TestPick_OneCore(t *testing.T) {
	t.Parallel()
	s := newSet(t, "http://a")
	a := s.All()[0]
	a.MarkUnreachable(io.EOF)
	var tried upstream.Tried
	if s.Pick(tried) != a {
		t.Error("the only core is not tried once it is ejected")
	}
	tried.MarkFailed(a)
	if s.Pick(tried) != a {
		t.Error("the only core is not tried again after it broke off")
	}
	tried.Exclude(a)
	if s.Pick(tried) != nil {
		t.Error("the only core is tried again after it refused")
	}
}

func BenchmarkPick(b *testing.B) {
	s := newSet(b, "http://a:1", "http://b:1", "http://c:1")
	b.ReportAllocs()
	for b.Loop() {
		s.Pick(upstream.Tried{}).Begin()
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://core": "core:80", "https://core": "core:443", "https://core:8443": "core:8443", "http://[::1]": "[::1]:80",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := upstream.Address(u); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
