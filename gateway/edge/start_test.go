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
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/gateway/command"
	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/testkit/retrytest"
)

// gateway is what ships, on real listeners, with its log.
type gateway struct {
	*command.Gateway
	address string
	log     *asynctest.Buffer
}

// settings are what tests vary.
type settings struct {
	command.Config
	accessLog *slog.Logger
	// edge changes the edge before it serves, where it is set.
	edge func(*edge.Edge)
}

// forTests are settings for a busy machine. GATEWAY_MAX_CONNS is below the limit of open files, which would else reduce it and
// GATEWAY_MAX_CONNS_PER_IP.
var forTests = map[string]string{
	"GATEWAY_LISTEN": "127.0.0.1:0", "GATEWAY_OPS_LISTEN": "127.0.0.1:0",
	"GATEWAY_CORE_SECRET": coretest.Secret.Reveal(), "GATEWAY_CORE_MAX_CONNS": "64", "GATEWAY_CHAINS_REFRESH": "100ms",
	"GATEWAY_KEY_LOOKUP_TIMEOUT": "1s", "GATEWAY_LIMIT_BUDGET": "5s", "GATEWAY_LIMIT_FALLBACK": "closed",
	"GATEWAY_MAX_CONNS": "10000", "GATEWAY_STREAM_RATE": "0", "GATEWAY_DRAIN_DELAY": "0s", "GATEWAY_DRAIN_TIMEOUT": "5s",
}

// start runs a gateway before the core until the test ends. It is ready when start returns.
func start(tb testing.TB, core *coretest.Core, change ...func(*settings)) *gateway {
	tb.Helper()
	config, err := command.ParseConfig(forTests)
	if err != nil {
		tb.Fatal(err)
	}
	g := &gateway{log: &asynctest.Buffer{}}
	log := slog.New(slog.NewJSONHandler(g.log, nil))
	s := settings{Config: config, accessLog: log}
	s.CoreURLs, s.RedisURL = []string{core.URL.String()}, telemetry.Secret(redisURL)
	s.UsageInterval = 50 * time.Millisecond // an operator may set 1s at least
	for _, with := range change {
		with(&s)
	}
	if g.Gateway, err = command.New(tb.Context(), s.Config, log, s.accessLog); err != nil {
		tb.Fatal(err)
	}
	g.address = g.Address()
	if s.edge != nil {
		s.edge(g.Edge)
	}
	uses.begin(core)
	tb.Cleanup(func() { leftNothing(tb, g, core) }) // after all that follows has ended
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ran; err != nil && !errors.Is(err, context.DeadlineExceeded) { // a client that stays
			tb.Error(err)
		}
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	asynctest.Eventually(tb, "the gateway is ready", func() bool {
		passing := metricstest.Values(tb, g.Metrics)
		return passing["intents_check_passing chains false"] == 1 && passing["intents_check_passing key_changes false"] == 1
	})
	return g
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
	text := string(body)
	if id := answer.Header.Get("X-Request-Id"); uuidForm.MatchString(id) {
		answer.Header.Del("X-Request-Id") // any; one of the client's stays
		text = scrubRequestID(text, id)
	} else if id == "" {
		tb.Error("the answer has no request id")
	}
	if answer.Close {
		answer.Header.Set("Connection", "close") // net/http takes it off
	}
	if after := answer.Header.Get("Retry-After"); after != "" {
		answer.Header.Set("Retry-After", retrytest.Least(answer.StatusCode, after, "1"))
	}
	return response{Status: answer.StatusCode, Header: answer.Header, Body: text}
}

// anyRequestID is the last member of an error's body, with an id that stands for the one of X-Request-Id.
const anyRequestID = `,"requestId":"00000000-0000-7000-8000-000000000000"`

// scrubRequestID writes the request's id in the body of an error as anyRequestID does.
func scrubRequestID(body, id string) string {
	return strings.Replace(body, `,"requestId":"`+id+`"`, anyRequestID, 1)
}

// closed reports whether the other side has closed, by a reset where it had not read all.
func (c *clientConn) closed() bool {
	_, err := c.reader.ReadByte()
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}
