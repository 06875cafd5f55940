package upstream_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
)

// A core that hangs is known by its probes: what waits for it is answered elsewhere, unless it could be carried out twice.
func TestClient_CoreHangs(t *testing.T) {
	t.Parallel()
	for kind, k := range map[string]struct {
		request
		moves bool
	}{
		"read": {read, true}, "list": {list, true}, "repeated write": {repeatedWrite, true}, "write": {write, false},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			hung := startCore(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			works := startCore(t, name("here"))
			c := newClient(t, settings{timeout: 2 * time.Second}, hung.URL, works.URL)
			results := make(chan error, 1)
			for hung.hits.Load() == 0 { // the two take turns until then
				go func() {
					_, err := c.do(k.request)
					results <- err
				}()
				asynctest.Eventually(t, "a request is answered or stuck", func() bool {
					select {
					case err := <-results:
						return err == nil
					default:
						return hung.hits.Load() > 0
					}
				})
			}
			pause(t, 2*checkInterval)
			before, began := works.hits.Load(), time.Now()
			hung.hangs.Store(true)
			asynctest.Eventually(t, "the core is ejected", func() bool { return c.set.All()[0].Down() })
			t.Logf("ejected after %s", time.Since(began))
			err := <-results
			moved := works.hits.Load() - before
			switch {
			case k.moves && (err != nil || moved != 1):
				t.Errorf("%v, and it was sent to the other core %d times", err, moved)
			case !k.moves && (!errors.Is(err, upstream.ErrTimeout) || moved != 0):
				t.Errorf("%v, and it was sent to the other core %d times", err, moved)
			}
			if got := hung.hits.Load(); got != 1 {
				t.Errorf("it was sent to the core that hangs %d times", got)
			}
			asynctest.Eventually(t, "core is told to stop working on it", func() bool { return hung.cancelled.Load() == 1 })
			hung.hangs.Store(false)
			asynctest.Eventually(t, "the core is back", c.set.All()[0].Up)
		})
	}
}

// Without another core there is nothing to do but wait.
func TestClient_OnlyCoreHangs(t *testing.T) {
	t.Parallel()
	hung := startCore(t, name(""))
	hung.hangs.Store(true)
	c := newClient(t, settings{timeout: 300 * time.Millisecond}, hung.URL)
	for kind, r := range map[string]request{"read": read, "list": list, "repeated write": repeatedWrite, "write": write} {
		before, began := hung.hits.Load(), time.Now()
		if _, err := c.do(r); !errors.Is(err, upstream.ErrTimeout) {
			t.Errorf("%s: %v", kind, err)
		}
		if took := time.Since(began); took > 5*time.Second { // 300 ms, and what a busy machine adds
			t.Errorf("%s took %s", kind, took)
		}
		if got := hung.hits.Load() - before; got != 1 {
			t.Errorf("%s was sent %d times", kind, got)
		}
	}
}

// A core that says it will end gets nothing new, and what it has is finished.
func TestClient_CoreDrains(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	ending := startCore(t, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "there")
	})
	stays := startCore(t, name("here"))
	c := newClient(t, settings{}, ending.URL, stays.URL)
	first := make(chan string, 8)
	for range 8 {
		go func() { first <- c.answer(write) }()
	}
	asynctest.Eventually(t, "both are asked", func() bool { return ending.hits.Load() > 0 && stays.hits.Load() > 0 })
	ending.unready.Store(true)
	asynctest.Eventually(t, "it is ejected", func() bool { return !c.set.All()[0].Up() })
	begun := ending.hits.Load()
	for range 20 {
		if got := c.answer(read); got != "here" {
			t.Error(got)
		}
	}
	if got := ending.hits.Load(); got > begun && got > 8 {
		t.Errorf("%d requests went to a core that will end", got-begun)
	}
	close(release)
	answers := map[string]int{}
	for range 8 {
		answers[<-first]++
	}
	if answers["here"]+answers["there"] != 8 || answers["there"] == 0 {
		t.Errorf("those in flight: %v", answers)
	}
}

// Requests beyond the bound are refused soon, and core is not asked for more.
func TestClient_MaxConns(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := startCore(t, func(w http.ResponseWriter, _ *http.Request) { <-release })
	c := newClient(t, settings{maxConns: 3}, slow.URL)
	var all sync.WaitGroup
	var busy, answered atomic.Int64
	for range 10 {
		all.Go(func() {
			switch _, err := c.do(write); {
			case err == nil:
				answered.Add(1)
			case errors.Is(err, upstream.ErrBusy):
				busy.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	asynctest.Eventually(t, "those too many are refused", func() bool { return busy.Load() == 7 })
	if got := slow.hits.Load(); got != 3 {
		t.Errorf("%d requests are in flight", got)
	}
	close(release)
	all.Wait()
	if answered.Load() != 3 {
		t.Errorf("%d were answered", answered.Load())
	}
}

// A connection that core resets as soon as it is made may have brought the request: a write is not sent again.
func TestClient_CoreResets(t *testing.T) {
	t.Parallel()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, 1))
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}
	}()
	works := startCore(t, name("here"))
	c := newClient(t, settings{unprobed: true}, "http://"+listener.Addr().String(), works.URL)
	for range 4 {
		if got := c.answer(read); got != "here" {
			t.Error(got)
		}
	}
	only := newClient(t, settings{}, "http://"+listener.Addr().String())
	for range 4 {
		if _, err := only.do(write); !errors.Is(err, upstream.ErrBroken) {
			t.Error(err)
		}
	}
}
