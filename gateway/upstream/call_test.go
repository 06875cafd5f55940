package upstream_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// call is a request of the gateway's own.
var call = upstream.Call{Method: http.MethodPost, Target: "/internal/thing?a=%2e", Body: []byte(`{"a":1}`)}

// called is the body of the response to a call, or the error.
func (c client) called(ctx context.Context, call upstream.Call) string {
	response, err := c.Call(ctx, call)
	if err != nil {
		return err.Error()
	}
	return string(response.Body)
}

// Calls and the requests of clients have one set of cores, one loop and one count of retries: what one learns of a core, the other knows.
func TestCall_OneLoop(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for kind, c := range map[string]struct{ first, second func(client) string }{
		"a call ejects for clients": {
			func(c client) string { return c.called(ctx, call) },
			func(c client) string { return c.answer(write) },
		},
		"a client ejects for calls": {
			func(c client) string { return c.answer(repeatedWrite) },
			func(c client) string { return c.called(ctx, call) },
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			broken, works := startCore(t, hangUp), startCore(t, name("here"))
			client := newClient(t, settings{unprobed: true}, broken.URL, works.URL)
			client.set.All()[1].Begin() // so that the broken core is tried first
			if got := c.first(client); got != "here" {
				t.Errorf("the first: %s", got)
			}
			if got := client.retries(t); got != 1 || client.set.All()[0].Up() {
				t.Errorf("%v retries; the broken core is up: %t", got, client.set.All()[0].Up())
			}
			for range 10 {
				if got := c.second(client); got != "here" {
					t.Errorf("the second: %s", got)
				}
			}
			if got := broken.hits.Load(); got != 1 || client.retries(t) != 1 {
				t.Errorf("the broken core was asked %d times, %v retries", got, client.retries(t))
			}
		})
	}
}

// A call is what it says, without anything that belongs to a client's request, and the same over a connection that core has closed since.
func TestCall_Request(t *testing.T) {
	t.Parallel()
	type seen struct {
		Method, Target, Body string
		Header               http.Header
	}
	requests := make(chan seen, 1)
	core := startCore(t, nil)
	core.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r.Method, r.RequestURI, string(body), r.Header}
		w.Header().Set("Etag", `"2"`)
		fmt.Fprint(w, "here")
	})
	c := newClient(t, settings{unprobed: true, options: upstream.Options{Secret: "hush"}}, core.URL)
	for _, test := range []struct {
		call upstream.Call
		want seen
	}{
		{call, seen{"POST", call.Target, `{"a":1}`, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"7"}, "Accept-Encoding": {"identity"}}}},
		{
			upstream.Call{Method: http.MethodGet, Target: "/v2/chains", ETag: `W/"1"`, Coding: "gzip"},
			seen{"GET", "/v2/chains", "", http.Header{"If-None-Match": {`W/"1"`}, "Accept-Encoding": {"gzip"}}},
		},
	} {
		response, err := c.Call(t.Context(), test.call)
		if err != nil || response.Status() != http.StatusOK || string(response.Body) != "here" || string(response.Head.Peek("ETag")) != `"2"` {
			t.Errorf("%+v, %v", response, err)
		}
		test.want.Header.Set(wire.HeaderGatewaySecret, "hush")
		if diff := cmp.Diff(test.want, <-requests); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		core.CloseClientConnections()
	}
	if got := c.retries(t); got != 0 {
		t.Errorf("%v retries", got)
	}
}

// A core that was not able to serve a call leaves it to the next, and is not ejected. The last such response is the call's.
func TestCall_ServerError(t *testing.T) {
	t.Parallel()
	unable := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "not now")
	}
	one, other, works := startCore(t, unable), startCore(t, unable), startCore(t, name("here"))
	c := newClient(t, settings{unprobed: true}, one.URL, other.URL)
	response, err := c.Call(t.Context(), call)
	if err != nil || response.Status() != http.StatusServiceUnavailable || string(response.Body) != "not now" {
		t.Errorf("%+v, %v", response, err)
	}
	if one.hits.Load() != 1 || other.hits.Load() != 1 || !c.set.All()[0].Up() || !c.set.All()[1].Up() || c.retries(t) != 1 {
		t.Errorf("the cores were asked %d and %d times, %v retries", one.hits.Load(), other.hits.Load(), c.retries(t))
	}
	c = newClient(t, settings{unprobed: true}, one.URL, works.URL, refusing(t))
	for range 10 {
		if got := c.called(t.Context(), call); got != "here" {
			t.Error(got)
		}
	}
}

// A core that hangs has half of the time, and the next is asked for what it has at once. It is ejected, unless it was the caller who had no
// more time.
func TestCall_AttemptTimeout(t *testing.T) {
	t.Parallel()
	var targets sync.Map
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			targets.Store(text, r.RequestURI)
			if text == "hung" {
				<-r.Context().Done()
			}
			fmt.Fprint(w, text)
		}
	}
	hung, works := startCore(t, answer("hung")), startCore(t, answer("here"))
	c := newClient(t, settings{unprobed: true}, hung.URL, works.URL)
	c.set.All()[1].Begin() // so that the core that hangs is tried first
	poll := upstream.Call{Method: http.MethodGet, Target: "/poll?wait=1s", RetryTarget: "/poll?wait=0s", Wait: time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	began := time.Now()
	if got := c.called(ctx, poll); got != "here" {
		t.Error(got)
	}
	if took := time.Since(began); took < 2400*time.Millisecond || took > 4*time.Second { // the wait of 1 s and half of the other 3 s
		t.Errorf("answered after %s", took)
	}
	first, _ := targets.Load("hung")
	second, _ := targets.Load("here")
	if first != poll.Target || second != poll.RetryTarget || c.set.All()[0].Up() || !c.set.All()[1].Up() {
		t.Errorf("asked for %v, then %v", first, second)
	}

	only := newClient(t, settings{unprobed: true}, hung.URL)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := only.Call(short, call); !errors.Is(err, context.DeadlineExceeded) || !only.set.All()[0].Up() {
		t.Errorf("%v; the core is up: %t", err, only.set.All()[0].Up())
	}
}

// A call that its caller cancels ends at once, tells core, and says nothing of it. Its connection is not used again.
func TestCall_Canceled(t *testing.T) {
	t.Parallel()
	slow := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/quick" {
			<-r.Context().Done()
		}
		fmt.Fprint(w, "here")
	})
	c := newClient(t, settings{maxConns: 1}, slow.URL)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 2)
	for range 2 { // of which one waits for the only connection
		go func() {
			_, err := c.Call(ctx, upstream.Call{Method: http.MethodGet, Target: "/slow"})
			results <- err
		}()
	}
	asynctest.Eventually(t, "it arrives", func() bool { return slow.hits.Load() == 1 })
	pause(t, 2*checkInterval) // longer than a client's request waits for a connection
	cancel()
	began := time.Now()
	for range 2 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("error: %v", err)
		}
	}
	t.Logf("ended after %s", time.Since(began))
	asynctest.Eventually(t, "core is told", func() bool { return slow.cancelled.Load() == 1 })
	if !c.set.All()[0].Up() || c.retries(t) != 0 {
		t.Error("a canceled call says nothing of the core")
	}
	if got := c.called(t.Context(), upstream.Call{Method: http.MethodGet, Target: "/quick"}); got != "here" {
		t.Error(got)
	}
}

// Calls and probes have connections of their own: they pass while clients have taken all of theirs, and clients while calls have.
func TestCall_OwnConnections(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var waits atomic.Bool
	waits.Store(true)
	core := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") || r.URL.Path == "/v2/transfers" && waits.Load() {
			<-release
		}
		fmt.Fprint(w, "here")
	})
	core.unready.Store(true)
	c := newClient(t, settings{maxConns: 1}, core.URL)
	asynctest.Eventually(t, "it is ejected", func() bool { return !c.set.All()[0].Up() })
	var all sync.WaitGroup
	all.Go(func() { c.answer(write) }) // keyless
	asynctest.Eventually(t, "it arrives", func() bool { return core.hits.Load() == 1 })
	if _, err := c.do(write); !errors.Is(err, upstream.ErrBusy) {
		t.Errorf("a request beyond the bound: %v", err)
	}
	if got := c.called(t.Context(), upstream.Call{Method: http.MethodGet, Target: "/quick"}); got != "here" {
		t.Errorf("a call: %s", got)
	}
	all.Go(func() { c.called(t.Context(), upstream.Call{Method: http.MethodGet, Target: "/slow"}) })
	asynctest.Eventually(t, "it arrives", func() bool { return core.hits.Load() == 3 })
	core.unready.Store(false)
	asynctest.Eventually(t, "a probe passes while all connections are in use", c.set.All()[0].Up)
	waits.Store(false)
	if _, err := c.do(write); !errors.Is(err, upstream.ErrBusy) {
		t.Errorf("a request beyond the bound: %v", err)
	}
	waiting := make(chan string, 1)
	all.Go(func() { waiting <- c.called(t.Context(), upstream.Call{Method: http.MethodGet, Target: "/quick"}) })
	pause(t, 2*checkInterval) // a call waits for a connection, also longer than a client's request does
	close(release)
	if got := <-waiting; got != "here" {
		t.Errorf("a call that waits for a connection: %s", got)
	}
	all.Wait()
	if got := c.counted(t, "intents_gateway_pool_connections_open")[strings.TrimPrefix(core.URL, "http://")+" own"]; got != 1 {
		t.Errorf("calls have %v connections", got)
	}
}

// Over TLS, calls, their cancellation, probes and the requests of clients are the same.
func TestCall_TLS(t *testing.T) {
	t.Parallel()
	core := newCore(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		fmt.Fprint(w, "here")
	})
	core.StartTLS()
	core.unready.Store(true)
	roots := x509.NewCertPool()
	roots.AddCert(core.Certificate())
	c := newClient(t, settings{options: upstream.Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}, core.URL)
	asynctest.Eventually(t, "it is ejected", func() bool { return !c.set.All()[0].Up() && !c.set.All()[0].Down() })
	core.unready.Store(false)
	asynctest.Eventually(t, "it is back", c.set.All()[0].Up)
	for range 2 {
		if got := c.called(t.Context(), call) + c.answer(write); got != "herehere" {
			t.Error(got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		before := core.hits.Load()
		result := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, upstream.Call{Method: http.MethodGet, Target: "/slow"})
			result <- err
		}()
		asynctest.Eventually(t, "it arrives", func() bool { return core.hits.Load() > before })
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("error: %v", err)
		}
	}
	asynctest.Eventually(t, "core is told", func() bool { return core.cancelled.Load() == 2 })
	if !c.set.All()[0].Up() {
		t.Error("a canceled call says nothing of the core")
	}
}

// A response over the call's bound is an error of its own, which no other core would change.
func TestCall_MaxBody(t *testing.T) {
	t.Parallel()
	const length = 2 << 20
	for kind, flush := range map[string]bool{"of known length": false, "in chunks": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			answer := func(w http.ResponseWriter, _ *http.Request) {
				if !flush {
					w.Header().Set("Content-Length", fmt.Sprint(length))
				}
				_, _ = io.WriteString(w, strings.Repeat("x", length))
			}
			one, other := startCore(t, answer), startCore(t, answer)
			c := newClient(t, settings{unprobed: true}, one.URL, other.URL)
			for most, fits := range map[int]bool{0: false, length - 1: false, length: true} {
				before := one.hits.Load() + other.hits.Load()
				response, err := c.Call(t.Context(), upstream.Call{Method: http.MethodGet, Target: "/long", MaxBody: most})
				if fits && (err != nil || len(response.Body) != length) || !fits && !errors.Is(err, upstream.ErrTooLong) {
					t.Errorf("at most %d: %v", most, err)
				}
				if got := one.hits.Load() + other.hits.Load() - before; got != 1 {
					t.Errorf("at most %d: sent %d times", most, got)
				}
			}
			if !c.set.All()[0].Up() || !c.set.All()[1].Up() {
				t.Error("a core is ejected")
			}
		})
	}
}
