package upstream_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/testkit/asynctest"
)

// A long answer comes as fast as it is read: core waits once what lies between is full, and that is not much.
func TestStream_Backpressure(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	core := startCore(t, func(w http.ResponseWriter, _ *http.Request) {
		row := []byte(strings.Repeat("x", 200))
		for {
			n, err := w.Write(row)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	c := newClient(t, settings{}, core.URL)
	answer, err := c.do(list)
	if err != nil {
		t.Fatal(err)
	}
	held := func() (stopped int64) {
		asynctest.Eventually(t, "core is held back", func() bool {
			before := written.Load()
			pause(t, 20*time.Millisecond)
			stopped = written.Load()
			return stopped > 0 && stopped == before
		})
		return stopped
	}
	// What the kernel holds for two sockets that are not read grows up to some megabytes (tcp_rmem and tcp_wmem).
	const most = 16 << 20
	first := held()
	if first > most {
		t.Errorf("core could send %d bytes that nobody has read", first)
	}
	const part = 32 << 20
	if _, err := io.CopyN(io.Discard, answer.BodyStream(), part); err != nil {
		t.Fatal(err)
	}
	if got := held(); got < part || got > part+most {
		t.Errorf("core sent %d bytes of which %d were read", got, part)
	}
	t.Logf("core sent %d KiB before it had to wait", first>>10)
	if err := answer.CloseBodyStream(); err != nil {
		t.Error(err)
	}
	asynctest.Eventually(t, "core is told", func() bool { return core.cancelled.Load() == 1 })
}

// Connections are used again once a body has been read to its end, and closed if it has not.
func TestStream_ConnectionReuse(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	long := strings.Repeat("x", 600<<10)
	core := newCore(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "length" {
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
		} else {
			w.Header().Set("Trailer", "X-Sum")
			defer w.Header().Set("X-Sum", "1")
		}
		_, _ = io.WriteString(w, long)
	})
	core.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	core.Start()
	c := newClient(t, settings{unprobed: true}, core.URL)
	withLength := list
	withLength.idempotencyKey = "length"
	for range 3 {
		for _, r := range []request{list, withLength} {
			if got := c.answer(r); got != long {
				t.Errorf("%d bytes", len(got))
			}
		}
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections for answers that were read", got)
	}
	for range 3 {
		answer, err := c.do(list)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.CloseBodyStream(); err != nil {
			t.Error(err)
		}
	}
	if got := c.answer(list); got != long {
		t.Errorf("%d bytes", len(got))
	}
	if got := connections.Load(); got != 4 {
		t.Errorf("%d connections, want one more for each answer that was not read", got)
	}
	want := map[string]float64{"whole": 7, "core": 0, "client": 3}
	if diff := cmp.Diff(want, c.counted(t, "intents_gateway_streamed_answers_total")); diff != "" {
		t.Errorf("how answers ended (-want +got):\n%s", diff)
	}
	if got := c.retries(t); got != 0 {
		t.Errorf("%g requests met what was left of another's answer", got)
	}
}

// A response that streams is counted as in flight until it is closed, and once.
func TestStream_InFlight(t *testing.T) {
	t.Parallel()
	core := startCore(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 600<<10)) })
	c := newClient(t, settings{}, core.URL)
	underWay := func() float64 {
		values := c.counted(t, "intents_gateway_core_requests_in_flight")
		return values[strings.TrimPrefix(core.URL, "http://")]
	}
	response, err := c.do(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := underWay(); got != 1 {
		t.Errorf("%g requests in flight while the response streams, want 1", got)
	}
	if err := response.CloseBodyStream(); err != nil {
		t.Error(err)
	}
	if got := underWay(); got != 0 {
		t.Errorf("%g requests in flight after the response, want 0", got)
	}
}
