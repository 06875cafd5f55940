package edge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

var (
	badVersion = unclear(505, "HTTP_VERSION_NOT_SUPPORTED", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
	badMethod  = refusal(405, `{"code":"METHOD_NOT_ALLOWED","message":"This path does not have this method."}`,
		"Allow", "GET, HEAD, POST, PATCH, DELETE", "Connection", "close")
	badExpectation = unclear(417, "EXPECTATION_FAILED", "The only expectation met is 100-continue.")
)

var lineRules = []rule{
	{
		input: "HTTP/1.2, HTTP/2.0, the preface of HTTP/2", answer: "505, closed",
		rows: refused(badVersion,
			line("GET /v2/tokens HTTP/1.2", ""),
			line("GET /v2/tokens HTTP/1.9", ""),
			line("GET /v2/tokens HTTP/2.0", ""),
			line("GET /v2/tokens HTTP/3.0", ""),
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		),
	},
	{
		input: "HTTP/0.9, another spelling of the protocol", answer: "400, closed",
		rows: slices.Concat(
			refused(notHTTP(),
				"GET /health\r\n",
				"GET /health\r\n\r\n",
				line("GET /v2/tokens http/1.1", ""),
				line("GET /v2/tokens Http/1.1", ""),
				line("GET /v2/tokens HTTP/1", ""),
				line("GET /v2/tokens HTTP/1.", ""),
				line("GET /v2/tokens HTTP/11", ""),
				line("GET /v2/tokens HTTP/1.10", ""),
				line("GET /v2/tokens HTTP/01.1", ""),
				line("GET /v2/tokens HTTP/+1.1", ""),
				line("GET /v2/tokens HTTP/1,1", ""),
				line("GET /v2/tokens HTTP/1.1x", ""),
				line("GET /v2/tokens HTTP /1.1", ""),
				line("GET /v2/tokens HTTPS/1.1", ""),
				line("GET /v2/tokens ICY/1.1", ""),
				line("GET /v2/tokens", ""),
				line("hello", ""),
				"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\r\n", // the start of TLS
			),
			refused(bad("HTTP/0.9 is not spoken here."), line("GET /v2/tokens HTTP/0.9", "")),
		),
	},
	{
		input: "Two blanks, a tab or another control character in the request line", answer: "400, closed",
		rows: refused(notHTTP(),
			line("GET  /v2/tokens HTTP/1.1", ""),
			line("GET /v2/tokens  HTTP/1.1", ""),
			line("GET /v2/tokens HTTP/1.1 ", ""),
			line(" GET /v2/tokens HTTP/1.1", ""),
			line("GET\t/v2/tokens\tHTTP/1.1", ""),
			line("GET /v2/tokens\tHTTP/1.1", ""),
			line("GET /v2/tokens HTTP/1.1\t", ""),
			line("GET /v2/ tokens HTTP/1.1", ""),
			line("GET\v/v2/tokens HTTP/1.1", ""),
			line("GET /v2/tokens\r HTTP/1.1", ""),
			line("GET /v2/tokens\x00 HTTP/1.1", ""),
			line("GET /v2/tokens\x7f HTTP/1.1", ""),
			line("GET /v2/tokens HTTP/1.1\r", ""),
			line("GET /v2/tokens HTTP/1.1\x00", ""),
			line("GET\x00 /v2/tokens HTTP/1.1", ""),
			line("G(T /v2/tokens HTTP/1.1", ""),
			line("GET: /v2/tokens HTTP/1.1", ""),
			line("\x00GET /v2/tokens HTTP/1.1", ""),
			line("\ufeffGET /v2/tokens HTTP/1.1", ""),
			line("GÉT /v2/tokens HTTP/1.1", ""),
			line("GET HTTP/1.1", ""),
			line("/v2/tokens HTTP/1.1", ""),
		),
	},
	{
		input: "`get`, `FOO`, `CONNECT`, `TRACE`: a method that no path has", answer: "405 with `Allow`, closed",
		rows: refused(badMethod,
			line("get /v2/tokens HTTP/1.1", ""),
			line("Get /v2/tokens HTTP/1.1", ""),
			line("GETS /v2/tokens HTTP/1.1", ""),
			line("FOO /v2/tokens HTTP/1.1", ""),
			line("FOO /v2/tokens HTTP/1.1", "Content-Length: 2\r\n")+"{}",
			line("TRACE /v2/tokens HTTP/1.1", ""),
			line("TRACK /v2/tokens HTTP/1.1", ""),
			line("QUERY /v2/tokens HTTP/1.1", ""),
			line("PROPFIND /v2/tokens HTTP/1.1", ""),
			line("CONNECT /v2/tokens HTTP/1.1", ""),
			line("CONNECT a:443 HTTP/1.1", ""),
			line("PRI * HTTP/1.1", ""),
			line(strings.Repeat("A", 4096)+" /v2/tokens HTTP/1.1", ""),
		),
	},
	{
		input: "An empty line before the request line", answer: "200",
		rows: passing(tellsList(), "\r\n"+list(""), "\r\n\r\n"+list("")),
	},
	{
		input: "LF alone at the end of the request line", answer: "200",
		rows: passing(tellsList(), strings.Replace(list(""), "\r\n", "\n", 1)),
	},
	{
		input: "HTTP/1.0", answer: "200, closed",
		rows: alike(last(passed()), tellsList(), line("GET /v2/tokens HTTP/1.0", "")),
	},
	{
		input: "HTTP/1.0 with `Connection: keep-alive`", answer: "200",
		rows: alike(kept(passed()), tellsList(), line("GET /v2/tokens HTTP/1.0", "Connection: keep-alive\r\n")),
	},
	{
		input: "`Connection: close` in any case, in a list, or on one of several lines", answer: "200, closed",
		rows: alike(last(passed()), tellsList(),
			list("Connection: close\r\n"),
			list("connection:\tCLOSE \r\n"),
			list("Connection: Close\r\n"),
			list("Connection: close, X-Account-Id\r\n"),
			list("Connection: keep-alive,close\r\n"),
			list("Connection: TE\r\nConnection: Close\r\n"),
		),
	},
	{
		input: "`Upgrade`, to whatever protocol", answer: "200; it is ignored, and core is not told",
		rows: slices.Concat(
			passing(tellsList(),
				list("Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"),
				list("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"),
				list("upgrade: TLS/1.0\r\n"),
				list("Upgrade:\r\n"),
				list("Connection: upgrade\r\nUpgrade: a/1, b\r\nUpgrade: HTTP/2.0\r\n"),
			),
			passing(tellsWrite("{}"), write("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 2\r\n", "{}")),
		),
	},
	{
		input: "A health check by HTTP/1.0, also without `Host`", answer: "204, closed",
		rows: refused(last(response{Status: 204, Header: http.Header{"Cache-Control": {"no-store"}}}),
			"GET /health HTTP/1.0\r\n\r\n", "HEAD /health HTTP/1.0\r\n\r\n", "GET /v2/health HTTP/1.0\r\n\r\n", "GET /health?a HTTP/1.0\r\nHost: a\r\n\r\n",
			"GET /health HTTP/1.0\r\nUser-Agent: HAProxy\r\n\r\n",
		),
	},
	{
		input: "`Expect` other than `100-continue`", answer: "417, closed",
		rows: refused(badExpectation,
			write("Expect: 200-ok\r\nContent-Length: 2\r\n", "{}"),
			write("Expect: 100-continue, 200-ok\r\nContent-Length: 2\r\n", "{}"),
			write("Expect: 100-continue;a\r\nContent-Length: 2\r\n", ""),
			write("Expect:\r\nContent-Length: 2\r\n", "{}"),
			list("Expect: the unexpected\r\n"),
		),
	},
	{
		input: "`Expect: 100-continue` without a key", answer: "401 without 100, closed",
		rows: refused(last(noKey()),
			"POST /v2/transfers HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
			"POST /v2/transfers HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n",
			"POST /v2/transfers HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"+chunkedTE+"\r\n",
		),
	},
	{
		input: "`Expect: 100-continue` with a bad key", answer: "403 without 100, closed",
		rows: refused(last(badKey()),
			"POST /v2/transfers HTTP/1.1\r\nHost: a\r\nX-Api-Key: sk_test_short\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
			"POST /v2/transfers HTTP/1.1\r\nHost: a\r\n"+apiKey(apikey.New(network.Test))+"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
			"POST /v2/transfers HTTP/1.1\r\nHost: a\r\n"+apiKey(apikey.New(network.Test))+"Expect: 100-CONTINUE\r\nContent-Length: 2\r\n\r\n",
		),
	},
	{
		input: "`Expect: 100-continue` in HTTP/1.0", answer: "200 without 100, closed",
		rows: alike(last(passed()), tellsWrite("{}"),
			line("POST /v2/transfers/1/transaction HTTP/1.0", "Expect: 100-continue\r\nContent-Length: 2\r\n")+"{}"),
	},
	{
		input: "`Expect: 100-continue` with a good key", answer: "100, then 200; spends the limit once",
		shown: goesOnAfter100,
	},
}

// kept is an answer whose connection stays open although the client speaks HTTP/1.0.
func kept(r response) response {
	r.Header = r.Header.Clone()
	r.Header.Set("Connection", "keep-alive")
	return r
}

func goesOnAfter100(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	body := transfer("eip155:11155111", "eip155:11155111")
	for _, expectation := range []string{"100-continue", "100-Continue"} {
		t.Run(expectation, func(t *testing.T) {
			t.Parallel()
			c := g.dial(t)
			defer c.Close()
			c.write(t, request("POST", "/v2/transfers", apiKey(core.AddKey(network.Test))+jsonType+
				fmt.Sprintf("Expect: %s\r\nContent-Length: %d\r\n", expectation, len(body)), ""))
			for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
				if line, err := c.reader.ReadString('\n'); err != nil || line != want {
					t.Fatalf("read %q, %v", line, err)
				}
			}
			c.write(t, body)
			want := passed()
			want.Header["Ratelimit"], want.Header["Ratelimit-Policy"] = []string{fresh[1]}, []string{fresh[3]}
			if diff := cmp.Diff(want, c.read(t, "POST")); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Cleanup(func() {
		for _, r := range core.Requests() {
			if r.Body != body || r.Header.Get("Expect") != "" {
				t.Errorf("core was told %+v", r)
			}
		}
	})
}
