package edge_test

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// slow answers once it is told to, and counts the requests whose clients have left before.
type slow struct {
	release        chan struct{}
	arrived, ended atomic.Int64
}

func (s *slow) answer(w http.ResponseWriter, r *http.Request) {
	s.arrived.Add(1)
	select {
	case <-s.release:
		_, _ = io.WriteString(w, "[]")
	case <-r.Context().Done():
		s.ended.Add(1)
	}
}

// Requests that wait behind a slow one are neither read nor lost by the looks at the client.
func TestPipelining_BehindSlowRequest(t *testing.T) {
	t.Parallel()
	s := &slow{release: make(chan struct{})}
	core := coretest.Start(t, s.answer)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	c := g.dial(t)
	defer c.Close()
	one := request("GET", "/v2/tokens", key, "")
	c.write(t, one+one)
	asynctest.Eventually(t, "the first arrives", func() bool { return s.arrived.Load() == 1 })
	c.write(t, one)                      // this one is in the socket, and not in the server's buffer
	<-time.After(300 * time.Millisecond) // a look comes every 100 ms
	close(s.release)
	for n := range 3 {
		if got := c.read(t, "GET"); got.Status != 200 || got.Body != "[]" {
			t.Errorf("answer %d: %+v", n+1, got)
		}
	}
	if got := s.ended.Load(); got != 0 {
		t.Errorf("%d requests were given up", got)
	}
}

// A client that has only closed its sending side can read why it gets no answer. Core is told, once.
func TestDisconnect_HalfClosed(t *testing.T) {
	t.Parallel()
	s := &slow{release: make(chan struct{})}
	core := coretest.Start(t, s.answer)
	g := start(t, core)
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), ""))
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	want := refusal(499, `{"code":"CLIENT_CLOSED_REQUEST","message":"The client closed the connection before the response; the request may have been carried out."}`, fresh...)
	if diff := cmp.Diff(want, c.read(t, "GET")); diff != "" {
		t.Error(diff)
	}
	asynctest.Eventually(t, "core is told", func() bool { return s.ended.Load() == 1 })
	if arrived, counted := s.arrived.Load(), g.value(t, "intents_gateway_requests_total client_gone /v2/tokens"); arrived != 1 || counted != 1 {
		t.Errorf("core was asked %d times; %v requests are counted", arrived, counted)
	}
}
