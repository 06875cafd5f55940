package edge_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/network"
)

const (
	// slowTimeout is the read timeout in these tests. A machine that is busy with all tests at once may end things later than
	// promised, by slowAllowance, but never sooner.
	slowTimeout   = time.Second
	slowAllowance = 5 * time.Second
)

// within says whether something that is promised for the time took about that.
func within(tb testing.TB, what string, took, promised time.Duration) {
	tb.Helper()
	tb.Logf("%s: %s after %s were promised", what, took.Round(time.Millisecond), promised)
	// The clock of the test starts a moment after the gateway's.
	if took < promised*9/10 || took > promised+slowAllowance {
		tb.Errorf("%s took %s, promised are %s", what, took, promised)
	}
}

// drip sends the text byte by byte until all of it is sent or nobody takes it any more.
func drip(c net.Conn, text string) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for n := range len(text) {
		<-ticker.C
		if _, err := c.Write([]byte{text[n]}); err != nil {
			return
		}
	}
}

// A request that comes byte by byte ends at the read timeout, wherever in it the client is slow.
func TestReadTimeout(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{edge: func(o *edge.Options) { o.Server.ReadTimeout = slowTimeout }})
	long := strings.Repeat("a", 4000)
	get := "GET /v2/tokens HTTP/1.1\r\nHost: a\r\nX-Long: " + long
	post := "POST /v2/transfers HTTP/1.1\r\nHost: a\r\n" + apiKey(core.AddKey(network.Test)) + jsonType
	// All clients are slow at the same time.
	var clients []slowClient
	for name, test := range map[string]struct{ atOnce, answer, slowly string }{
		"request line":       {"", "", "GET /v2/tokens?" + long},
		"headers":            {"", "", get},
		"second request":     {request("GET", "/health", "", ""), "HTTP/1.1 204 No Content", get},
		"body":               {post + "Content-Length: 4000\r\n\r\n", "", long},
		"one chunk":          {post + "Transfer-Encoding: chunked\r\n\r\nfa0\r\n", "", long},
		"chunks":             {post + "Transfer-Encoding: chunked\r\n\r\n", "", strings.Repeat("1\r\na\r\n", 1000)},
		"after 100 Continue": {post + "Content-Length: 4000\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 100 Continue", long},
	} {
		c := slowClient{name: name, conn: g.dial(t), began: time.Now()}
		defer c.Close()
		c.write(t, test.atOnce)
		if test.answer != "" {
			c.skip(t, test.answer)
		}
		go drip(c, test.slowly)
		clients = append(clients, c)
	}
	want := unclear(408, "REQUEST_TIMEOUT", "The request did not arrive in time.")
	for _, c := range clients {
		if diff := cmp.Diff(want, c.read(t, "POST")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if !c.closed() {
			t.Errorf("%s: the connection stays open", c.name)
		}
		within(t, c.name, time.Since(c.began), slowTimeout)
	}
	if got := core.Requests(); len(got) > 0 {
		t.Errorf("core received %v", got)
	}
}

type slowClient struct {
	*conn
	name  string
	began time.Time
}

// skip reads an answer without a body.
func (c *conn) skip(tb testing.TB, status string) {
	tb.Helper()
	for first := true; ; first = false {
		line, err := c.reader.ReadString('\n')
		if err != nil || first && line != status+"\r\n" {
			tb.Fatalf("%q, %v, want %q", line, err, status)
		}
		if line == "\r\n" {
			return
		}
	}
}

// A connection that never says anything is closed at the read timeout and is no request: it gets no answer that a client
// could take for that of a request it sends just then, and a crowd of them fills no log.
func TestReadTimeout_SilentConnection(t *testing.T) {
	t.Parallel()
	g := start(t, coretest.Start(t, nil), settings{edge: func(o *edge.Options) { o.Server.ReadTimeout = slowTimeout }})
	c := g.dial(t)
	defer c.Close()
	began := time.Now()
	if n, err := io.Copy(io.Discard, c); n > 0 || err != nil {
		t.Errorf("%d bytes, then %v", n, err)
	}
	within(t, "silence", time.Since(began), slowTimeout)
	if strings.Contains(g.log.String(), `"msg":"request"`) {
		t.Errorf("the log tells of a request: %s", g.log)
	}
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	g := start(t, coretest.Start(t, nil), settings{edge: func(o *edge.Options) {
		o.Server.ReadTimeout, o.Server.IdleTimeout = 500*time.Millisecond, 1500*time.Millisecond
	}})
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("GET", "/health", "", ""))
	if got := c.read(t, "GET"); got.Status != 204 {
		t.Fatalf("%+v", got)
	}
	began := time.Now()
	if n, err := io.Copy(io.Discard, c); n > 0 || err != nil {
		t.Errorf("%d bytes, then %v", n, err)
	}
	within(t, "idleness", time.Since(began), 1500*time.Millisecond)
}

// What is said outside of an answer has time of its own, however long ago the last answer was.
func TestExpectContinue_LongPause(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{edge: func(o *edge.Options) { o.Server.WriteTimeout = 200 * time.Millisecond }})
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("GET", "/health", "", ""))
	if got := c.read(t, "GET"); got.Status != 204 {
		t.Fatalf("%+v", got)
	}
	<-time.After(400 * time.Millisecond) // the last answer's time is over
	c.write(t, "POST /v2/transfers HTTP/1.1\r\nHost: a\r\n"+apiKey(core.AddKey(network.Test))+jsonType+"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
	c.skip(t, "HTTP/1.1 100 Continue")
}

// endless is a core whose answers never end, and how many of them it is sending.
func endless(t *testing.T) (*coretest.Core, *atomic.Int64) {
	t.Helper()
	var sending atomic.Int64
	return coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/tokens") {
			fmt.Fprint(w, `[]`)
			return
		}
		sending.Add(1)
		defer sending.Add(-1)
		chunk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}), &sending
}

// slowReader asks for a list that never ends and has the kernel take as little of it as it can.
func (g *gateway) slowReader(tb testing.TB, key string) *conn {
	tb.Helper()
	c := g.dial(tb)
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		tb.Fatal(err)
	}
	c.write(tb, request("GET", "/v2/transfers", key, ""))
	return c
}

func TestWriteTimeout_SlowReader(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*conn) error{
		"nothing": func(*conn) error { return nil },
		"a little now and then": func(c *conn) error {
			_, err := io.CopyN(io.Discard, c, 1<<10)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, sending := endless(t)
			g := start(t, core, settings{edge: func(o *edge.Options) {
				o.Server.WriteTimeout, o.Server.StreamRate = slowTimeout, 1<<20
			}})
			began := time.Now()
			c := g.slowReader(t, apiKey(core.AddKey(network.Test)))
			defer c.Close()
			asynctest.Eventually(t, "core sends", func() bool { return sending.Load() == 1 })
			asynctest.Eventually(t, "the reader is let go", func() bool {
				_ = read(c) // what it comes to shows below
				return sending.Load() == 0
			})
			within(t, name, time.Since(began), slowTimeout)
			asynctest.Eventually(t, "it is counted", func() bool { return g.value(t, "intents_gateway_slow_readers_total") == 1 })
			asynctest.Eventually(t, "nobody is left", func() bool { return g.value(t, "intents_gateway_connections_open") == 0 })
		})
	}
}

// A client that reads at the rate may take as long as the answer is, and is not charged for what core takes.
func TestWriteTimeout_SteadyReader(t *testing.T) {
	t.Parallel()
	const pieces, piece = 12, 64 << 10
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		for range pieces {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
			fmt.Fprint(w, strings.Repeat(" ", piece))
			_ = http.NewResponseController(w).Flush()
		}
	})
	g := start(t, core, settings{edge: func(o *edge.Options) { o.Server.WriteTimeout, o.Server.StreamRate = 300*time.Millisecond, 1<<40 }})
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("GET", "/v2/transfers", apiKey(core.AddKey(network.Test)), ""))
	if got := c.read(t, "GET"); got.Status != 200 || len(got.Body) != pieces*piece {
		t.Errorf("%d with %d bytes", got.Status, len(got.Body))
	}
}

// Readers that hold long answers leave room for everybody's short ones, and one account's for another's long ones.
func TestStream_SlowReadersBounded(t *testing.T) {
	t.Parallel()
	core, sending := endless(t)
	g := start(t, core, settings{edge: func(o *edge.Options) { o.Server.MaxLongLists = 48 }})
	greedy, other := apiKey(core.AddKey(network.Test)), apiKey(core.AddKey(network.Test))
	for range 40 { // of the 64 connections to core
		c := g.slowReader(t, greedy)
		defer c.Close()
		if _, err := c.reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	// Of 64 connections 48 may be in use for long answers, 2 of these for one account.
	asynctest.Eventually(t, "core sends what one account may have", func() bool { return sending.Load() == 2 })
	if got := g.send(t, request("GET", "/v2/tokens", other, "")); got.Status != 200 {
		t.Errorf("short answer: %+v", got)
	}
	// Core is not even asked for what this account could not have.
	before := len(core.Requests())
	if got := g.send(t, request("GET", "/v2/transfers", greedy, "")); got.Status != 503 || len(core.Requests()) != before {
		t.Errorf("one more: %+v, core received %d requests", got, len(core.Requests())-before)
	}
	for range 30 {
		account := apiKey(core.AddKey(network.Test))
		for range 2 {
			c := g.slowReader(t, account)
			defer c.Close()
			if _, err := c.reader.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	asynctest.Eventually(t, "core sends what all accounts may have", func() bool { return sending.Load() == 48 })
	if got := g.send(t, request("GET", "/v2/tokens", other, "")); got.Status != 200 {
		t.Errorf("short answer: %+v", got)
	}
	got := g.send(t, request("GET", "/v2/transfers", other, ""))
	delete(got.Header, "Ratelimit") // it depends on the time
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"Too many long lists are in flight for all accounts together. Request pages with limit, or try again shortly."}`,
		"Retry-After", "1", "Ratelimit-Policy", `"default";q=50;w=60`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("long answer: %s", diff)
	}
}

// Answers to requests that came at once are each counted until they are written, and no longer.
func TestStream_PipelinedCountedOnce(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 100_000)) })
	g := start(t, core, settings{edge: func(o *edge.Options) { o.Server.MaxLongLists = 24 }})
	c := g.dial(t)
	defer c.Close()
	key := apiKey(core.AddKey(network.Test))
	c.write(t, strings.Repeat(request("GET", "/v2/tokens", key, "")+request("GET", "/v2/transfers", key, ""), 3))
	for range 6 {
		if got := c.read(t, "GET"); got.Status != 200 || len(got.Body) != 100_000 {
			t.Fatalf("%d with %d bytes", got.Status, len(got.Body))
		}
	}
	asynctest.Eventually(t, "none is counted", func() bool { return g.value(t, "intents_gateway_long_answers") == 0 })
}

// However many lists one account asks for at once, others have connections to core.
func TestStream_ListsByAccount(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var making atomic.Int64
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			making.Add(1)
			<-release
		}
		fmt.Fprint(w, `[]`)
	})
	g := start(t, core, settings{edge: func(o *edge.Options) { o.Server.MaxLongLists = 48 }})
	greedy, other := apiKey(core.AddKey(network.Test)), apiKey(core.AddKey(network.Test))
	var waiting []*conn
	for range 12 { // a quarter
		c := g.dial(t)
		defer c.Close()
		c.write(t, request("GET", "/v2/transfers?wait", greedy, ""))
		waiting = append(waiting, c)
	}
	asynctest.Eventually(t, "core makes what one account may have", func() bool { return making.Load() == 12 })
	for target, want := range map[string]int{"/v2/transfers": 503, "/v2/events": 503, "/v2/tokens": 200} {
		if got := g.send(t, request("GET", target, greedy, "")); got.Status != want {
			t.Errorf("%s: %+v", target, got)
		}
	}
	if got := g.send(t, request("GET", "/v2/transfers", other, "")); got.Status != 200 {
		t.Errorf("another account: %+v", got)
	}
	close(release)
	for _, c := range waiting {
		if got := c.read(t, "GET"); got.Status != 200 {
			t.Errorf("one of the twelve: %+v", got)
		}
		_ = c.Close()
	}
	asynctest.Eventually(t, "there is room again", func() bool {
		return g.send(t, request("GET", "/v2/transfers", greedy, "")).Status == 200
	})
}

// value is that of one series in the gateway's metrics, by its name and labels as they are shown; 0 where there is none.
func (g *gateway) value(tb testing.TB, series string) float64 {
	tb.Helper()
	name, _, _ := strings.Cut(series, "{")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_count"), "_sum") // of a histogram
	text, err := testutil.CollectAndFormat(g.registry, expfmt.TypeTextPlain, name)
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if said, found := strings.CutPrefix(strings.TrimSpace(line), series+" "); found {
			value, err := strconv.ParseFloat(said, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return value
		}
	}
	return 0
}
