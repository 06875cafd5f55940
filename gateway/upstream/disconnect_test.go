package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
)

// peer is a client that may leave.
type peer struct {
	gone atomic.Bool
	asks atomic.Int64
}

func (p *peer) Disconnected() bool {
	p.asks.Add(1)
	return p.gone.Load()
}

func TestDisconnect_CancelsCore(t *testing.T) {
	t.Parallel()
	for kind, r := range map[string]request{"read": read, "list": list, "write": write, "repeated write": repeatedWrite} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			slow := startCore(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			other := startCore(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			c := newClient(t, settings{}, slow.URL, other.URL)
			var client peer
			r.peer = &client
			result := make(chan error, 1)
			go func() {
				_, err := c.do(r)
				result <- err
			}()
			asynctest.Eventually(t, "it arrives", func() bool { return slow.hits.Load()+other.hits.Load() == 1 })
			asynctest.Eventually(t, "the client is watched", func() bool { return client.asks.Load() > 1 })
			left := time.Now()
			client.gone.Store(true)
			asynctest.Eventually(t, "core is told", func() bool { return slow.cancelled.Load()+other.cancelled.Load() == 1 })
			t.Logf("core was told %s after the client left", time.Since(left))
			if err := <-result; !errors.Is(err, upstream.ErrClientGone) {
				t.Errorf("error: %v", err)
			}
			if got := slow.hits.Load() + other.hits.Load(); got != 1 {
				t.Errorf("it was sent %d times", got)
			}
			if !c.set.All()[0].Up() || !c.set.All()[1].Up() {
				t.Error("a client that leaves is no sign of a core that fails")
			}
		})
	}
}

// What is quick is not watched: a look is a system call.
func TestDisconnect_QuickResponseNotChecked(t *testing.T) {
	t.Parallel()
	c := newClient(t, settings{}, startCore(t, name("here")).URL)
	for kind, r := range map[string]request{"read": read, "list": list, "write": write} {
		var client peer
		r.peer = &client
		began := time.Now()
		if got := c.answer(r); got != "here" {
			t.Errorf("%s: %s", kind, got)
		}
		if took := time.Since(began); client.asks.Load() > 0 && took < checkInterval {
			t.Errorf("%s was answered after %s, and the client was looked at", kind, took)
		}
	}
}

// Once the answer has begun it is the body's reader that tells, by closing it; the client is not asked any more.
func TestDisconnect_WhileStreaming(t *testing.T) {
	t.Parallel()
	core := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "[")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c := newClient(t, settings{}, core.URL)
	var client peer
	r := list
	r.peer = &client
	answer, err := c.do(r)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(answer.BodyStream(), first); err != nil || string(first) != "[" {
		t.Fatalf("%q, %v", first, err)
	}
	asked := client.asks.Load()
	if err := answer.CloseBodyStream(); err != nil {
		t.Error(err)
	}
	asynctest.Eventually(t, "core is told", func() bool { return core.cancelled.Load() == 1 })
	if got := client.asks.Load(); got != asked {
		t.Errorf("the client was asked %d times after its answer began", got-asked)
	}
}
