package edge_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/metricstest"
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
	g := start(t, core, func(s *settings) { s.ReadTimeout = slowTimeout })
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
		c := slowClient{name: name, clientConn: g.dial(t), began: time.Now()}
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
	*clientConn
	name  string
	began time.Time
}

// skip reads an answer without a body.
func (c *clientConn) skip(tb testing.TB, status string) {
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
	g := start(t, coretest.Start(t, nil), func(s *settings) { s.ReadTimeout = slowTimeout })
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
	g := start(t, coretest.Start(t, nil), func(s *settings) {
		s.ReadTimeout, s.IdleTimeout = 500*time.Millisecond, 1500*time.Millisecond
	})
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
	g := start(t, core, func(s *settings) { s.WriteTimeout = 200 * time.Millisecond })
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

// value is that of one series in the gateway's metrics, by its name and its labels' values as metricstest.Values joins them; 0 for none.
func (g *gateway) value(tb testing.TB, series string) float64 {
	tb.Helper()
	return metricstest.Values(tb, g.Metrics)[series]
}
