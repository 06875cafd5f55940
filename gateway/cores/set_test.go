package cores_test

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/testkit/asynctest"
)

// transport is a stand-in for the connections to a core, which is up unless the test says otherwise.
type transport struct {
	result                    atomic.Pointer[result]
	probes, givenBack, closed atomic.Int64
}

// result is what a probe says.
type result struct {
	state cores.State
	err   error
}

func (t *transport) Probe(context.Context) (cores.State, error) {
	t.probes.Add(1)
	if r := t.result.Load(); r != nil {
		return r.state, r.err
	}
	return cores.Up, nil
}

func (t *transport) GiveBack() { t.givenBack.Add(1) }

func (t *transport) Close() { t.closed.Add(1) }

type set struct {
	*cores.Set
	registry *prometheus.Registry
	log      *asynctest.Buffer
}

// newSet does not probe its cores. The resolver is nil where all have an address.
func newSet(tb testing.TB, resolve func(context.Context, string) ([]netip.Addr, error), all ...string) set {
	tb.Helper()
	s := set{registry: prometheus.NewRegistry(), log: &asynctest.Buffer{}}
	o := cores.Options{
		Resolve: resolve, Connect: func(*cores.Core) cores.Transport { return &transport{} },
		Log: slog.New(slog.NewTextHandler(s.log, nil)), Metrics: s.registry,
	}
	for _, text := range all {
		u, err := url.Parse(text)
		if err != nil {
			tb.Fatal(err)
		}
		o.URLs = append(o.URLs, u)
	}
	s.Set = cores.New(o)
	return s
}

// transport is that of the core with this number.
func (s set) transport(core int) *transport { return s.All()[core].Transport.(*transport) }

// run resolves and probes until the test ends.
func (s set) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

func TestPick(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil, "http://a:1", "http://b:1", "http://c:1")
	a, b, c := s.All()[0], s.All()[1], s.All()[2]
	var none cores.Tried
	picked := func(tried cores.Tried) (names string) {
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
	expect := func(when string, tried cores.Tried, want string) {
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

	var tried cores.Tried
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
	if a.OtherUp() || !a.Down() || c.Down() || a.Up() || c.Up() {
		t.Error("what cannot be reached is down, what broke off is only ejected, and neither is up")
	}
}

func TestPick_OneCore(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil, "http://a")
	a := s.All()[0]
	a.MarkUnreachable(io.EOF)
	var tried cores.Tried
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
	s := newSet(b, nil, "http://a:1", "http://b:1", "http://c:1")
	b.ReportAllocs()
	for b.Loop() {
		s.Pick(cores.Tried{}).Begin()
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
		if got := cores.Address(u); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// What waits for a core that is lost goes to another one, whoever found out.
func TestSet_GivesBack(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil, "http://a", "http://b")
	a, b := s.All()[0], s.All()[1]
	expect := func(when string, ofA, ofB int64) {
		t.Helper()
		if gotA, gotB := s.transport(0).givenBack.Load(), s.transport(1).givenBack.Load(); gotA != ofA || gotB != ofB {
			t.Errorf("%s: requests are given back %d and %d times, want %d and %d", when, gotA, gotB, ofA, ofB)
		}
	}
	a.MarkUnreachable(io.EOF)
	expect("with one lost", 1, 0)
	b.MarkFailed()
	expect("with no core left", 1, 0)
	if a.Lost() || b.Lost() {
		t.Error("a core is lost although no other is up")
	}
	s.Close()
	if s.transport(0).closed.Load() != 1 || s.transport(1).closed.Load() != 1 {
		t.Error("connections stay open")
	}
}
