package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
)

// FuzzFraming has a client say anything, in pieces of any size.
func FuzzFraming(f *testing.F) {
	for _, theme := range themes {
		for _, rule := range theme.rules {
			for _, row := range rule.rows {
				if len(row.sent) < 4<<10 {
					f.Add([]byte(row.sent), byte(0))
					f.Add([]byte(row.sent+hidden), byte(len(row.sent)))
				}
			}
		}
	}
	a := newArena(f)
	f.Fuzz(a.holds)
}

// FuzzFragments is the same with what attacks are made of: each byte stands for a fragment.
func FuzzFragments(f *testing.F) {
	f.Add([]byte{0, 7, 8, 4, 9, 12, 4, 3, 5, 3}, byte(0))
	f.Add([]byte{1, 7, 9, 4, 10, 15, 4, 3, 6, 3, 2, 3}, byte(1))
	f.Add([]byte{1, 7, 8, 5, 3, 11, 3, 3, 6, 3, 6, 3, 3}, byte(3))
	a := newArena(f)
	f.Fuzz(func(t *testing.T, numbers []byte, step byte) {
		var stream []byte
		for _, n := range numbers {
			stream = append(stream, fragments[int(n)%len(fragments)]...)
		}
		a.holds(t, stream, step)
	})
}

var fragments = []string{
	"GET /v2/tokens HTTP/1.1\r\nHost: a\r\n", "POST /auth/x HTTP/1.1\r\nHost: a\r\n", "0\r\n", "\r\n", ": ", "2", "{}", withKey,
	"Content-Length", "Transfer-Encoding", "chunked", "Transfer-Encoding: chunked\r\n", "Content-Length: 2\r\n", "\n", "\r", " ", "\t", ",", ";a=b", "\"", "\x00",
	"\v", "\x85", "+", "-", "0x", "identity", "Expect: 100-continue\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n", "GET", "HEAD", "POST", "PATCH", "DELETE",
	" /console ", " /v2/tokens ", " /v2/webhooks/1 ", "HTTP/1.1", "HTTP/1.0", "Host", "X-One", "Trailer", "Upgrade", "2\r\n{}\r\n", "0\r\n\r\n", "X-Api-Key", "Cookie: a=b\r\n",
	"Origin: https://a\r\n", "User-Agent: a\r\n", "Idempotency-Key: a\r\n", "Content-Type: application/json\r\n", "X-Request-Id: a\r\n", "Accept: a\r\n", hidden,
	"?a=b", "#", "%2e", "..", "//", "[::1]:80", "65536", "é", "_", "Pragma: no-cache\r\n", "If-None-Match: a\r\n", "\r\n\r\n",
}

// arena is a gateway and what hears on either side of it.
type arena struct {
	core     *coretest.Core
	listener *scripts
	outcomes *outcomeLog
}

func newArena(f *testing.F) *arena {
	f.Helper()
	a := &arena{
		core:     coretest.Start(f, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Etag", fromCore) }),
		outcomes: &outcomeLog{},
	}
	a.listener = serveScripts(f, start(f, a.core, func(s *settings) { s.accessLog = slog.New(a.outcomes) }))
	putRowKey(a.core)
	return a
}

// holds has a client send the stream. Whatever the gateway lets through, fasthttp and net/http must both read as core was
// told it, and there must be as many answers as both of them see requests.
func (a *arena) holds(t *testing.T, stream []byte, step byte) {
	t.Helper()
	if len(stream) > 16<<10 {
		return
	}
	said := a.listener.play(t, slices.Collect(slices.Chunk(bytes.Clone(stream), max(1, pieceOf(stream, step))))...)
	became, heard := a.outcomes.take(), a.core.Requests()
	a.core.Take()
	byFasthttp, byNetHTTP := readByFasthttp(stream), readByNetHTTP(stream)
	answers := answersIn(t, said, byFasthttp)
	if len(answers) != len(became) {
		t.Fatalf("%d answers to %d requests:\n%s", len(answers), len(became), said)
	}
	for i, answer := range answers {
		if became[i] == "malformed_request" || became[i] == "method_not_allowed" && answer.last {
			if !answer.last || i < len(answers)-1 {
				t.Fatalf("answer %d refuses and the connection goes on:\n%s", i, said)
			}
			break
		}
		if i == len(byFasthttp) && answer.last && answer.status >= 400 {
			break // who expected 100 is refused before there is a body to read
		}
		if i >= len(byFasthttp) || i >= len(byNetHTTP) {
			t.Fatalf("request %d passes, of %d that fasthttp and %d that net/http sees", i, len(byFasthttp), len(byNetHTTP))
		}
		if diff := cmp.Diff(byNetHTTP[i], byFasthttp[i]); diff != "" {
			t.Fatalf("request %d passes and reads otherwise (-net/http +fasthttp):\n%s", i, diff)
		}
		if !answer.fromCore {
			continue
		}
		if len(heard) == 0 {
			t.Fatalf("answer %d is core's, which has heard nothing", i)
		}
		if diff := cmp.Diff(passedOn(byNetHTTP[i]), told(heard[0])); diff != "" {
			t.Fatalf("request %d (-client +core):\n%s", i, diff)
		}
		heard = heard[1:]
	}
	if len(heard) > 0 {
		t.Fatalf("core heard besides: %v", heard)
	}
	if n := len(answers); (n == 0 || !answers[n-1].last) && (len(byFasthttp) != n || len(byNetHTTP) != n) {
		t.Fatalf("%d answers to %d requests by fasthttp and %d by net/http", n, len(byFasthttp), len(byNetHTTP))
	}
}

// fromCore marks core's answers.
const fromCore = `"core"`

// pieceOf is how long the pieces are that the stream is read in; 0 is for one.
func pieceOf(stream []byte, step byte) int {
	if step == 0 {
		return len(stream)
	}
	return int(step)
}

// verdict is what matters of an answer.
type verdict struct {
	status         int
	last, fromCore bool
}

// answersIn reads all that was said to the client, which must be whole answers and nothing else.
func answersIn(t *testing.T, said []byte, to []reading) (answers []verdict) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(said))
	for {
		if _, err := r.Peek(1); err != nil {
			return answers
		}
		method := http.MethodGet
		if len(answers) < len(to) {
			method = to[len(answers)].Method
		}
		answer, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("answer %d: %v:\n%s", len(answers), err, said)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatalf("answer %d: %v:\n%s", len(answers), err, said)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusContinue {
			answers = append(answers, verdict{answer.StatusCode, answer.Close, answer.Header.Get("Etag") == fromCore})
		}
	}
}

// Of what a client says, core may hear these fields on every route, and those on routes with a session.
var (
	forAll      = []string{"accept", "accept-encoding", "accept-language", "content-type", "idempotency-key", "if-modified-since", "if-none-match", "prefer", "user-agent"}
	forSessions = []string{"cookie", "origin", "referer", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user"}
)

// passedOn is what core should hear of a request: of a field that stands several times the first.
func passedOn(r reading) reading {
	path, _, _ := strings.Cut(r.Target, "?")
	fields := map[string][]string{}
	names := forAll
	if !strings.HasPrefix(path, "/v2/") && path != "/openapi.json" {
		names = append(slices.Clone(forAll), forSessions...)
	} else {
		r.Host = ""
	}
	for _, name := range names {
		if values := r.Fields[name]; len(values) > 0 && values[0] != "" {
			fields[name] = values[:1]
		}
	}
	if path == "/v2/openapi.json" || path == "/openapi.json" {
		r.Target = "/openapi.json"
	}
	r.Fields = fields
	return r
}

// told is what core heard, without what the gateway itself says.
func told(r coretest.Request) reading {
	heard := reading{Method: r.Method, Target: r.Target, Host: r.Host, Body: r.Body, Fields: map[string][]string{}}
	for key, values := range r.Header {
		switch name := strings.ToLower(key); name {
		case "x-account-id", "x-key-id", "x-key-env", "x-forwarded-for", "x-forwarded-proto", "x-request-id", "content-length", "traceparent", "tracestate":
		default:
			heard.Fields[name] = values
		}
	}
	if r.Header.Get("X-Key-Id") != "" || r.Target == "/openapi.json" {
		heard.Host = "" // core's own
	}
	return heard
}

// outcomeLog takes from access log lines what became of the requests.
type outcomeLog struct {
	mu  sync.Mutex
	got []string
}

func (*outcomeLog) Enabled(context.Context, slog.Level) bool { return true }
func (o *outcomeLog) WithAttrs([]slog.Attr) slog.Handler     { return o }
func (o *outcomeLog) WithGroup(string) slog.Handler          { return o }

func (o *outcomeLog) Handle(_ context.Context, line slog.Record) error {
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "outcome" {
			o.mu.Lock()
			o.got = append(o.got, a.Value.String())
			o.mu.Unlock()
		}
		return true
	})
	return nil
}

func (o *outcomeLog) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.got
	o.got = nil
	return got
}
