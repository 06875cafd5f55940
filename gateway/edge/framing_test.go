package edge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

func unclear(status int, code, message string) response {
	return refusal(status, fmt.Sprintf(`{"code":"%s","message":"%s"}`, code, message), "Connection", "close")
}

func bad(message string) response { return unclear(400, "INVALID_REQUEST", message) }

// What could be read in two ways is refused, closes the connection, and never reaches core.
func TestFraming(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
	key := apiKey(core.AddKey(network.Test))
	post := func(headers, body string) string {
		return "POST /v2/transfers HTTP/1.1\r\nHost: a\r\n" + key + headers + "\r\n" + body
	}
	get := func(headers string) string { return "GET /v2/tokens HTTP/1.1\r\nHost: a\r\n" + key + headers + "\r\n" }
	path := func(path string) string { return request("GET", path, key, "") }

	for name, test := range map[string]struct {
		raw  string
		want response
	}{
		"length, then chunked":      {post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), bad("Content-Length and Transfer-Encoding must not stand together.")},
		"chunked, then length":      {post("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "0\r\n\r\n"), bad("Content-Length and Transfer-Encoding must not stand together.")},
		"identity":                  {post("Transfer-Encoding: identity\r\n", ""), bad("Transfer-Encoding must be chunked.")},
		"trailer":                   {post("Transfer-Encoding: chunked\r\nTrailer: X-Api-Key\r\n", "0\r\n\r\n"), bad("This service does not take trailers.")},
		"two keys":                  {get(key), bad("The x-api-key header is repeated.")},
		"two idempotency keys":      {post("Idempotency-Key: a\r\nIdempotency-Key: a\r\n", ""), bad("A header that may stand only once is repeated.")},
		"an empty idempotency key":  {post("Idempotency-Key: \r\n", ""), bad("The Idempotency-Key header is empty.")},
		"two media types":           {post("Content-Type: application/json\r\nContent-Type: text/plain\r\n", ""), bad("A header that may stand only once is repeated.")},
		"two types":                 {post("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", ""), bad("A header that may stand only once is repeated.")},
		"folded header":             {get("X-Folded: a\r\n b\r\n"), bad("Header lines must not be folded.")},
		"bare LF":                   {get("X-One: a\nX-Two: b\r\n"), bad("Header lines must end in CR LF.")},
		"no host":                   {"GET /v2/tokens HTTP/1.0\r\n" + key + "\r\n", bad("There must be one Host header with a host name.")},
		"host with odd characters":  {"GET /v2/tokens HTTP/1.1\r\nHost: a,b\r\n" + key + "\r\n", bad("There must be one Host header with a host name.")},
		"upgrade":                   {get("Connection: upgrade\r\nUpgrade: websocket\r\n"), bad("This service does not switch protocols.")},
		"absolute target":           {"GET http://a/v2/tokens HTTP/1.1\r\nHost: a\r\n" + key + "\r\n", bad("The request target must be a path.")},
		"asterisk target":           {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", bad("The request target must be a path.")},
		"GET with a body":           {get("Content-Length: 2\r\n") + "{}", bad("This method does not take a body.")},
		"GET with chunks":           {get("Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", bad("This method does not take a body.")},
		"HEAD with a body":          {"HEAD /health HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", headOf(bad("This method does not take a body."))},
		"DELETE with a body":        {request("DELETE", "/v2/tokens", key, "{}"), bad("This method does not take a body.")},
		"dots":                      {path("/v2/../health"), bad("The path holds characters that no path of this service has.")},
		"dot":                       {path("/v2/./tokens"), bad("The path holds characters that no path of this service has.")},
		"encoded dots":              {path("/v2/%2e%2e/health"), bad("The path holds characters that no path of this service has.")},
		"two slashes":               {path("/v2//tokens"), bad("The path holds characters that no path of this service has.")},
		"two slashes first":         {path("//v2/tokens"), bad("The path holds characters that no path of this service has.")},
		"encoded slash":             {path("/v2%2ftokens"), bad("The path holds characters that no path of this service has.")},
		"backslash":                 {path(`/v2\tokens`), bad("The path holds characters that no path of this service has.")},
		"encoded NUL":               {path("/v2/tokens%00"), bad("The path holds characters that no path of this service has.")},
		"parameter":                 {path("/v2/tokens;x"), bad("The path holds characters that no path of this service has.")},
		"fragment":                  {path("/v2/tokens#x"), bad("The path holds characters that no path of this service has.")},
		"bad percent":               {path("/v2/tokens%zz"), bad("The path holds characters that no path of this service has.")},
		"raw UTF-8":                 {path("/v2/tokens/é"), bad("The path holds characters that no path of this service has.")},
		"fragment in the query":     {path("/v2/tokens?a#b"), bad("The query holds characters that must be percent-encoded.")},
		"two keys on an open route": {request("GET", "/health", key+key, ""), bad("The x-api-key header is repeated.")},
		"compressed body":           {post("Content-Encoding: gzip\r\nContent-Length: 2\r\n", "{}"), unclear(415, "UNSUPPORTED_MEDIA_TYPE", "The body must not be compressed.")},
		"over the cap":              {post("Content-Length: 65537\r\n", ""), unclear(413, "PAYLOAD_TOO_LARGE", "The body is too long.")},
		"over the cap in chunks":    {post("Transfer-Encoding: chunked\r\n", "10001\r\n"+strings.Repeat(" ", 65537)+"\r\n0\r\n\r\n"), unclear(413, "PAYLOAD_TOO_LARGE", "The body is too long.")},
		"64 header lines too many":  {get(strings.Repeat("X-A: b\r\n", 63)), unclear(431, "HEADERS_TOO_LARGE", "The request has too many header lines.")},
		"headers too long":          {get("X-A: " + strings.Repeat("b", 9000) + "\r\n"), unclear(431, "HEADERS_TOO_LARGE", "The request's headers are too long.")},
		"HTTP/1.2":                  {"GET /health HTTP/1.2\r\nHost: a\r\n\r\n", unclear(505, "HTTP_VERSION_NOT_SUPPORTED", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")},
		"HTTP/2 preface":            {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", unclear(505, "HTTP_VERSION_NOT_SUPPORTED", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")},
		"another expectation":       {post("Expect: 200-ok\r\nContent-Length: 2\r\n", "{}"), unclear(417, "EXPECTATION_FAILED", "The only expectation met is 100-continue.")},
		"not HTTP":                  {"hello\r\n\r\n", bad("The request is not valid HTTP/1.1.")},
		"two lengths":               {post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"), bad("The request is not valid HTTP/1.1.")},
		"length with a sign":        {post("Content-Length: +2\r\n", "{}"), bad("The request is not valid HTTP/1.1.")},
		"gzip, chunked":             {post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), bad("The request is not valid HTTP/1.1.")},
		"no host in HTTP/1.1":       {"GET /v2/tokens HTTP/1.1\r\n" + key + "\r\n", bad("The request is not valid HTTP/1.1.")},
		"two hosts":                 {get("Host: b\r\n"), bad("The request is not valid HTTP/1.1.")},
		"lower-case protocol":       {"GET /health http/1.1\r\nHost: a\r\n\r\n", bad("The request is not valid HTTP/1.1.")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := g.dial(t)
			defer c.Close()
			c.write(t, test.raw)
			if diff := cmp.Diff(test.want, c.read(t, strings.Fields(test.raw)[0])); diff != "" {
				t.Error(diff)
			}
			if !c.closed() {
				t.Error("the connection is still open")
			}
		})
	}
	t.Cleanup(func() {
		if diff := cmp.Diff([]coretest.Request(nil), core.Requests()); diff != "" {
			t.Errorf("core received: %s", diff)
		}
	})
}

// headOf is what a HEAD gets of an answer.
func headOf(r response) response {
	r.Body = ""
	return r
}

func TestUnknownMethodsAreRefusedEarly(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
	want := refusal(405, `{"code":"METHOD_NOT_ALLOWED","message":"This path does not have this method."}`,
		"Allow", "GET, HEAD, POST", "Connection", "close")
	for _, raw := range []string{
		"get /v2/tokens HTTP/1.1\r\nHost: a\r\n\r\n",
		"FOO /v2/tokens HTTP/1.1\r\nHost: a\r\n\r\n",
		"TRACE /v2/tokens HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT /v2/tokens HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
	} {
		if diff := cmp.Diff(want, g.send(t, raw)); diff != "" {
			t.Errorf("%q: %s", raw, diff)
		}
	}
}

func TestExpect(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
	body := transfer("eip155:11155111", "eip155:11155111")
	ask := func(key apikey.Key) string {
		return request("POST", "/v2/transfers", apiKey(key)+jsonType+"Expect: 100-continue\r\n"+fmt.Sprintf("Content-Length: %d\r\n", len(body)), "")
	}
	t.Run("bad key", func(t *testing.T) {
		t.Parallel()
		want := refusal(403, badKeyBody, "Connection", "close")
		if diff := cmp.Diff(want, g.send(t, ask(apikey.New(network.Test)))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("good key", func(t *testing.T) {
		t.Parallel()
		c := g.dial(t)
		defer c.Close()
		c.write(t, ask(core.AddKey(network.Test)))
		for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
			if line, err := c.reader.ReadString('\n'); err != nil || line != want {
				t.Fatalf("read %q, %v", line, err)
			}
		}
		c.write(t, body)
		got := c.read(t, "POST")
		if got.Status != 200 || got.Header.Get("Ratelimit") != `"default";r=49;t=2` {
			t.Errorf("answer: %+v", got) // one request, counted once
		}
	})
}

func TestKeepAliveAndPipelining(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
	key := apiKey(core.AddKey(network.Test))
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("GET", "/v2/tokens", key, "")+request("GET", "/v2/nothing", key, "")+request("GET", "/v2/chains", key, ""))
	var got []string
	for range 3 {
		r := c.read(t, "GET")
		got = append(got, fmt.Sprint(r.Status, " ", strings.Split(r.Header.Get("Ratelimit"), ";")[1]))
	}
	if diff := cmp.Diff([]string{"200 r=49", "404 r=48", "200 r=47"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestKeyIsTrimmed(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
	raw := request("GET", "/v2/tokens", "x-api-key:  \t"+core.AddKey(network.Test).Reveal()+" \t \r\n", "")
	if got := g.send(t, raw); got.Status != 200 {
		t.Errorf("answer: %+v", got)
	}
}
