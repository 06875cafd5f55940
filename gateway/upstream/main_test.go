package upstream_test

import (
	"cmp"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/gateway/coretest"
	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/wire"
)

// core is a stand-in that answers its probes, and all else as the test says.
type core struct {
	*httptest.Server
	// hits are the requests it was sent, cancelled those that it was told to end.
	hits, cancelled atomic.Int64
	// hangs makes it answer nothing any more, probes neither.
	hangs atomic.Bool
	// unready fails its probes.
	unready atomic.Bool
	// batches makes it serve batches, whose requests the answer gets one by one.
	batches atomic.Bool
}

func startCore(t *testing.T, answer http.HandlerFunc) *core {
	t.Helper()
	c := newCore(t, answer)
	c.Start()
	return c
}

func newCore(t *testing.T, answer http.HandlerFunc) *core {
	t.Helper()
	c := &core{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.HeaderCore, wire.CoreAnswered)
		probe := r.URL.Path == wire.PathReady
		if !probe {
			if r.URL.Path != wire.PathBatch { // which the handler reads
				_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that leaves once it has read all
			}
			c.hits.Add(1)
			defer func() {
				if r.Context().Err() != nil {
					c.cancelled.Add(1)
				}
			}()
		}
		if c.hangs.Load() {
			<-r.Context().Done()
			return
		}
		if c.batches.Load() && probe {
			w.Header().Set(wire.HeaderBatch, wire.BatchVersion)
		}
		switch {
		case c.batches.Load() && r.URL.Path == wire.PathBatch:
			coretest.Batch(answer).ServeHTTP(w, r)
		case !probe:
			answer(w, r)
		case c.unready.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	c.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(func() {
		c.CloseClientConnections() // else it waits for what hangs
		c.Close()
	})
	return c
}

// name answers with a name.
func name(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// hangUp closes the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// refusing is the URL of a core that does not listen.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

// client forwards to cores.
type client struct {
	*upstream.Client
	set      *cores.Set
	registry *prometheus.Registry
}

// retries is how many requests were sent a second time.
func (c client) retries(t *testing.T) float64 {
	t.Helper()
	return c.counted(t, "intents_gateway_core_retries_total")[""]
}

// counted is a counter or gauge by the value of its label.
func (c client) counted(t *testing.T, name string) map[string]float64 {
	t.Helper()
	return metricstest.Of(t, c.registry, name)
}

type settings struct {
	timeout  time.Duration
	maxConns int
	// options has what else a test sets.
	options upstream.Options
	// unprobed leaves the cores unprobed.
	unprobed bool
}

func newClient(t *testing.T, s settings, urls ...string) client {
	t.Helper()
	registry, o := prometheus.NewRegistry(), s.options
	o.Timeout, o.MaxConns, o.Metrics = cmp.Or(s.timeout, 20*time.Second), cmp.Or(s.maxConns, 64), registry
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o.URLs = append(o.URLs, u)
	}
	start := coretest.Upstream
	if s.unprobed {
		start = coretest.Unprobed
	}
	c := client{Client: start(t, o), registry: registry}
	c.set = c.Cores()
	return c
}

// kinds of requests, by what may be done with them.
var (
	read          = request{method: fasthttp.MethodGet}
	write         = request{method: fasthttp.MethodPost, body: "{}"}
	repeatedWrite = request{method: fasthttp.MethodPost, body: "{}", idempotencyKey: "once"}
	list          = request{method: fasthttp.MethodGet, stream: true}
)

type request struct {
	method, body, idempotencyKey string
	stream, session, batch       bool
	id                           string
	peer                         upstream.Peer
	// ignoresIdempotencyKey is set for a route where core does not know the header.
	ignoresIdempotencyKey bool
}

// do forwards a request. The answer's body is a stream where it is long.
func (c client) do(r request) (*fasthttp.Response, error) {
	var sent fasthttp.Request
	sent.Header.SetMethod(r.method)
	sent.SetBodyString(r.body)
	if r.idempotencyKey != "" {
		sent.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	var got upstream.Response
	err := c.Do(&upstream.Request{
		Client: &sent, Target: []byte("/v2/transfers?a=%2e"), ID: []byte(cmp.Or(r.id, "id")), Began: time.Now(), ClientIP: []byte("192.0.2.1"), Proto: "http",
		Stream: r.stream, Session: r.session, Batch: r.batch, Peer: r.peer, HonorsIdempotencyKey: !r.ignoresIdempotencyKey,
	}, &got)
	answer := &fasthttp.Response{}
	got.CopyHeader(&answer.Header)
	answer.SetBodyRaw(got.Body)
	if got.Stream != nil {
		answer.SetBodyStream(got.Stream, got.Stream.Length())
	}
	return answer, err
}

// answer is what do gives, as text.
func (c client) answer(r request) string {
	response, err := c.do(r)
	if err != nil {
		return err.Error()
	}
	if !response.IsBodyStream() {
		return string(response.Body())
	}
	text, err := io.ReadAll(response.BodyStream())
	if closing := response.CloseBodyStream(); err == nil {
		err = closing
	}
	if err != nil {
		return "broken: " + err.Error()
	}
	return string(text)
}

// checkInterval is how often an exchange that waits looks around.
const checkInterval = 100 * time.Millisecond

// pause lets time pass, which is part of what a test is about.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
