package edge_test

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
)

var timeRules = []rule{
	{
		input: "A request that stops in the middle, or comes a byte every 200 ms", shown: unfinishedRequestsEnd,
		answer: "408 at the read timeout, closed",
	},
	{input: "A client that hangs up within a request", answer: "400, closed", shown: halfRequestsAreNotPassedOn},
	{input: "A client that hangs up within the second of two requests", answer: "200, then 400, closed", shown: wholeRequestsAreAnswered},
	{input: "A request in pieces, cut at any byte", answer: "the same as in one", shown: piecesReadAsWhole},
}

// unfinished are requests that lack something at their end.
var unfinished = map[string]string{
	"half a request line":           "GET /v2/tok",
	"half a header":                 "GET /v2/tokens HTTP/1.1\r\nHost: a\r\nX-On",
	"no empty line":                 "GET /v2/tokens HTTP/1.1\r\nHost: a\r\n" + withKey,
	"lines that end in LF alone":    strings.ReplaceAll(list(""), "\r\n", "\n"),
	"an LF alone for the last line": "GET /v2/tokens HTTP/1.1\r\nHost: a\r\n" + withKey + "\n",
	"no body":                       write("Content-Length: 2\r\n", ""),
	"half a body":                   write("Content-Length: 2\r\n", "{"),
	"no chunk":                      chunks(""),
	"half a chunk size":             chunks("2"),
	"half a chunk extension":        chunks("2;a"),
	"half a chunk":                  chunks("2\r\n{"),
	"no CRLF after a chunk":         chunks("2\r\n{}"),
	"no last chunk":                 chunks("2\r\n{}\r\n"),
	"half a trailer":                chunks("2\r\n{}\r\n0\r\nX-On"),
}

func unfinishedRequestsEnd(t *testing.T) {
	t.Helper()
	t.Parallel()
	const readTimeout = 700 * time.Millisecond
	core := coretest.Start(t, nil)
	g := start(t, core, func(s *settings) { s.ReadTimeout = readTimeout })
	type waiting struct {
		*clientConn
		began time.Time
	}
	conns := map[string]waiting{} // all begin before the first is waited for, so that one timeout is enough
	begin := func(name, sent string) *clientConn {
		c := g.dial(t)
		conns[name] = waiting{c, time.Now()}
		c.write(t, sent)
		return c
	}
	for name, sent := range unfinished {
		begin(name, sent)
	}
	go trickle(begin("a byte every 200 ms", write("Content-Length: 1000\r\n", "")))
	want := unclear(408, "REQUEST_TIMEOUT", "The request did not arrive in time.")
	for name, c := range conns {
		if diff := cmp.Diff(want, c.read(t, "POST")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		// The promise is the read timeout. A busy machine may be late, by ten times that and more, but never early.
		took := time.Since(c.began)
		t.Logf("%s: answered after %s of %s", name, took.Round(time.Millisecond), readTimeout)
		if took < readTimeout*9/10 || took > 10*time.Second {
			t.Errorf("%s: answered after %s", name, took)
		}
		if !c.closed() {
			t.Errorf("%s: the connection stays open", name)
		}
		_ = c.Close()
	}
	if told := core.Take(); len(told) > 0 {
		t.Errorf("core was told %q", told)
	}
}

// trickle sends a byte every 200 ms until nobody takes it.
func trickle(c net.Conn) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for range ticker.C {
		if _, err := c.Write([]byte(" ")); err != nil {
			return
		}
	}
}

func halfRequestsAreNotPassedOn(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	for name, sent := range unfinished {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := g.dial(t)
			defer c.Close()
			c.write(t, sent)
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(notHTTP(), c.read(t, "POST")); diff != "" {
				t.Error(diff)
			}
			if !c.closed() {
				t.Error("the connection stays open")
			}
		})
	}
	t.Cleanup(func() {
		if told := core.Take(); len(told) > 0 {
			t.Errorf("core was told %q", told)
		}
	})
}

// The first answer must not be lost for what became of the second request.
func wholeRequestsAreAnswered(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	putRowKey(core)
	for name, sent := range unfinished {
		c := g.dial(t)
		c.write(t, list("")+sent)
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{200, 400} {
			if got := c.read(t, "GET"); got.Status != want {
				t.Errorf("%s: %+v, want %d", name, got, want)
			}
		}
		if !c.closed() {
			t.Errorf("%s: the connection stays open", name)
		}
		_ = c.Close()
		if diff := cmp.Diff(tellsList(), canonicals(core.Take())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// volatile is what differs between two answers to the same request.
var volatile = regexp.MustCompile(`(?m)^(Date|X-Request-Id|RateLimit|RateLimit-Policy): .*\r\n|"requestId":"[^"]*"`)

func piecesReadAsWhole(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	listener := serveScripts(t, start(t, core))
	putRowKey(core)
	heard := func(pieces ...[]byte) string {
		said := volatile.ReplaceAllString(string(listener.play(t, pieces...)), "")
		return fmt.Sprintf("client: %s\ncore: %s", said, canonicals(core.Take()))
	}
	for name, stream := range map[string]string{
		"a list":                    list("Accept: */*\r\n"),
		"two requests":              list("") + write("Content-Length: 2\r\n", "{}"),
		"chunks, then another":      chunks("2;a=b\r\n{}\r\na \r\n0123456789\r\n0\r\n\r\n") + line("GET /health HTTP/1.1", ""),
		"an expectation":            write("Expect: 100-continue\r\nContent-Length: 2\r\n", "{}"),
		"a refusal, then another":   write("Content-Length: 5\r\n"+chunkedTE, "0\r\n\r\n"+hidden),
		"trailers, then another":    chunks("0\r\nX-Checksum: a\r\n\r\n" + hidden),
		"a folded header":           list("X-One: a\r\n b\r\n"),
		"an LF alone":               list("X-One: a\nX-Two: b\r\n") + hidden,
		"a chunk that is too short": chunks("3\r\n{}\r\n0\r\n\r\n" + hidden),
	} {
		t.Run(name, func(t *testing.T) {
			whole := heard([]byte(stream))
			for cut := 1; cut < len(stream); cut++ {
				if diff := cmp.Diff(whole, heard([]byte(stream[:cut]), []byte(stream[cut:]))); diff != "" {
					t.Fatalf("cut between %q and %q (-whole +pieces):\n%s", stream[:cut], stream[cut:], diff)
				}
			}
			var bytes [][]byte
			for i := range len(stream) {
				bytes = append(bytes, []byte(stream[i:i+1]))
			}
			if diff := cmp.Diff(whole, heard(bytes...)); diff != "" {
				t.Errorf("byte by byte (-whole +pieces):\n%s", diff)
			}
		})
	}
}
