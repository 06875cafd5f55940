package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/edge"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/polls"
	"intents.internal/gateway/upstream"
	"intents.internal/gateway/upstream/catalog"
	"intents.internal/gateway/upstream/control"
	"intents.internal/gateway/upstream/coretest"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/retrytest"
	"intents.internal/pkg/topology"
)

// gateway is an edge with all that belongs to it, on a real listener.
type gateway struct {
	address  string
	edge     *edge.Edge
	cores    *upstream.Set
	registry *prometheus.Registry
	log      *asynctest.Buffer
}

// settings are what tests vary; the zero value is for a busy machine.
type settings struct {
	redisURL    string
	budget      time.Duration
	fallback    limit.Fallback
	coreTimeout time.Duration
	coreSilence time.Duration
	// maxConns bounds the connections to core, of each kind.
	maxConns int
	maxPolls int
	edge     func(*edge.Options)
	// listener is a port on the loopback where it is nil.
	listener net.Listener
}

// start runs a gateway before the core until the test ends. It is ready when start returns.
func start(tb testing.TB, core *coretest.Core, s settings) *gateway {
	tb.Helper()
	orDefault(&s.redisURL, redisURL)
	orDefault(&s.budget, 5*time.Second)
	orDefault(&s.fallback, limit.Closed)
	orDefault(&s.coreTimeout, 10*time.Second)
	orDefault(&s.coreSilence, 5*time.Second)
	orDefault(&s.maxConns, 64)
	orDefault(&s.maxPolls, 20_000)

	g := &gateway{registry: prometheus.NewRegistry(), log: &asynctest.Buffer{}}
	log := slog.New(slog.NewJSONHandler(g.log, nil))
	redis, err := limit.NewRedis(topology.Single, s.redisURL, s.budget)
	if err != nil {
		tb.Fatal(err)
	}
	uses.begin(core)
	tb.Cleanup(func() { leftNothing(tb, g, core) }) // after all that follows has ended
	toCore := coretest.Options(core.URL)
	toCore.Timeout, toCore.MaxConns, toCore.Metrics = s.coreTimeout, s.maxConns, g.registry
	forwarder := coretest.Upstream(tb, toCore)
	g.cores = forwarder.Cores()
	client := control.New(forwarder)
	chains := control.NewChains(client, 100*time.Millisecond, log)
	documents := catalog.New(client)
	limiter := limit.New(limit.Options{
		Redis: redis, Budget: s.budget, Fallback: s.fallback, Capacity: 50_000, Log: log, Metrics: g.registry,
	})
	verifier := keys.New(keys.Options{
		Core: client, Capacity: 50_000, TTL: time.Minute, UnknownTTL: 10 * time.Second,
		LookUpTimeout: time.Second, LookUps: 64, Log: log, Metrics: g.registry,
	})
	recorder := usage.New(usage.Options{
		Report: client.ReportUsage, Interval: 50 * time.Millisecond, Backlog: 1000, Log: log, Metrics: g.registry,
	})
	waiting := polls.New(polls.Options{Core: client, Max: s.maxPolls, Log: log, Metrics: g.registry})
	options := edge.Options{
		Keys: verifier, Limiter: limiter, Chains: chains, Catalog: documents, Core: client, Upstream: forwarder, Polls: waiting, Usage: recorder,
		CoreSilence: s.coreSilence,
		Server: edge.ServerOptions{
			ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, StreamTimeout: time.Minute, IdleTimeout: 10 * time.Second,
			MaxConns: 10_000, MaxHeaderBytes: 8 << 10, MaxBodyBytes: 64 << 10,
		},
		AccessLog: log, Log: log, Metrics: g.registry,
	}
	if s.edge != nil {
		s.edge(&options)
	}
	g.edge = edge.New(options)

	listener := s.listener
	if listener == nil {
		if listener, err = (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0"); err != nil {
			tb.Fatal(err)
		}
	}
	g.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { chains.Run(ctx) })
	running.Go(func() { verifier.Run(ctx) })
	running.Go(func() { waiting.Run(ctx) })
	running.Go(func() { recorder.Run(ctx) })
	running.Go(func() {
		if err := g.edge.Serve(listener); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(func() {
		drain, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		_ = g.edge.Drain(drain)
		cancel()
		running.Wait()
		documents.Close()
		verifier.Close()
		limiter.Close()
		_ = redis.Close()
	})
	asynctest.Eventually(tb, "the gateway is ready", func() bool { return chains.Ready(ctx) == nil && verifier.Ready(ctx) == nil })
	return g
}

func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// response is a whole answer, but for the date and the request id, which must be there.
type response struct {
	Status int
	Header http.Header
	Body   string
}

// request makes one in which nothing is given but what is said.
func request(method, target, headers, body string) string {
	if body != "" {
		headers += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return method + " " + target + " HTTP/1.1\r\nHost: api.example.com\r\n" + headers + "\r\n" + body
}

// send writes the raw text on a new connection and reads one answer.
func (g *gateway) send(tb testing.TB, raw string) response {
	tb.Helper()
	conn := g.dial(tb)
	defer conn.Close()
	conn.write(tb, raw)
	method, _, _ := bytes.Cut([]byte(raw), []byte(" "))
	return conn.read(tb, string(method))
}

// retryAfter is the Retry-After of a new connection's first response, as it was sent.
func (g *gateway) retryAfter(tb testing.TB) string {
	tb.Helper()
	conn := g.dial(tb)
	defer conn.Close()
	conn.write(tb, request("GET", "/health", "", ""))
	conn.allow(tb)
	answer, err := http.ReadResponse(conn.reader, nil)
	if err != nil {
		tb.Fatalf("read the answer: %v", err)
	}
	_ = answer.Body.Close()
	return answer.Header.Get("Retry-After")
}

type clientConn struct {
	net.Conn
	reader *bufio.Reader
}

func (g *gateway) dial(tb testing.TB) *clientConn {
	tb.Helper()
	c, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", g.address)
	if err != nil {
		tb.Fatal(err)
	}
	dialed := &clientConn{Conn: c, reader: bufio.NewReader(c)}
	dialed.allow(tb)
	return dialed
}

// allow gives the next read or write 20 seconds.
func (c *clientConn) allow(tb testing.TB) {
	tb.Helper()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		tb.Fatal(err)
	}
}

func (c *clientConn) write(tb testing.TB, raw string) {
	tb.Helper()
	c.allow(tb)
	if _, err := io.WriteString(c, raw); err != nil {
		tb.Fatal(err)
	}
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func (c *clientConn) read(tb testing.TB, method string) response {
	tb.Helper()
	c.allow(tb)
	answer, err := http.ReadResponse(c.reader, &http.Request{Method: method})
	if err != nil {
		tb.Fatalf("read the answer: %v", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		tb.Fatalf("read the answer's body: %v", err)
	}
	if answer.Header.Get("Date") == "" {
		tb.Error("the answer has no date")
	}
	answer.Header.Del("Date")
	if id := answer.Header.Get("X-Request-Id"); uuidForm.MatchString(id) {
		answer.Header.Del("X-Request-Id") // any; one of the client's stays
	} else if id == "" {
		tb.Error("the answer has no request id")
	}
	if answer.Close {
		answer.Header.Set("Connection", "close") // net/http takes it off
	}
	if after := answer.Header.Get("Retry-After"); after != "" {
		answer.Header.Set("Retry-After", retrytest.Least(answer.StatusCode, after, "1"))
	}
	return response{Status: answer.StatusCode, Header: answer.Header, Body: string(body)}
}

// closed reports whether the other side has closed, by a reset where it had not read all.
func (c *clientConn) closed() bool {
	_, err := c.reader.ReadByte()
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}
