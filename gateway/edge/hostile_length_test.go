package edge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
)

// hidden is a whole request that an attacker would like to be taken for one of its own.
const hidden = "GET /v2/tokens HTTP/1.1\r\nHost: a\r\n" + withKey + "X-Hidden: yes\r\n\r\n"

var (
	twoLengths  = bad("Content-Length and Transfer-Encoding must not stand together.")
	badEncoding = bad("Transfer-Encoding must be chunked.")
	noBodyHere  = bad("This method does not take a body.")
)

// Where one parser sees the end of a request and another one goes on, a request can be smuggled past the first.
var lengthRules = []rule{
	{
		input: "`Content-Length` and `Transfer-Encoding` together, in any order", answer: "400, closed",
		rows: slices.Concat(
			refused(twoLengths,
				write("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
				write("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: CHUNKED\r\nX-Between: a\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: identity\r\nContent-Length: 2\r\n", "{}"),
				write("Content-Length: 2\r\nTransfer-Encoding: identity\r\n", "{}"),
			),
			refused(twoLengths,
				// A request behind the chunks, and one within them.
				write(fmt.Sprintf("Content-Length: %d\r\n"+chunkedTE, 5+len(hidden)), "0\r\n\r\n"+hidden),
				write("Content-Length: 4\r\n"+chunkedTE, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)),
				// The answer does not wait for a body, nor tell the client to send it.
				amend("Content-Length: 5\r\n"+chunkedTE, "0\r\n\r\n"+hidden),
				write("Content-Length: 5\r\n"+chunkedTE, ""),
				write("Expect: 100-continue\r\nContent-Length: 5\r\n"+chunkedTE, ""),
				"POST /auth/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"+chunkedTE+"\r\n0\r\n\r\n",
			),
		),
	},
	{
		input: "`Content-Length` repeated, a list, or anything but a plain decimal number", answer: "400, closed",
		rows: slices.Concat(
			refused(notHTTP(),
				write("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"),
				write("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"),
				write("Content-Length: 0\r\ncontent-length: 2\r\n", "{}"),
				write("Content-Length: 2, 2\r\n", "{}"),
				write("Content-Length: 2,2\r\n", "{}"),
				write("Content-Length: 2 2\r\n", "{}"),
				write("Content-Length: +2\r\n", "{}"),
				write("Content-Length: -1\r\n", "{}"),
				write("Content-Length: -0\r\n", "{}"),
				write("Content-Length: 0x2\r\n", "{}"),
				write("Content-Length: 2.0\r\n", "{}"),
				write("Content-Length: 1e1\r\n", "{}"),
				write("Content-Length: 1_0\r\n", "{}"),
				write("Content-Length: 2;a\r\n", "{}"),
				write("Content-Length: \"2\"\r\n", "{}"),
				write("Content-Length: \r\n", "{}"),
				write("Content-Length:\r\n", "{}"),
				write("Content-Length: two\r\n", "{}"),
				write("Content-Length: ２\r\n", "{}"),
				write("Content-Length: 2\xa0\r\n", "{}"),
				write("Content-Length: 2\x85\r\n", "{}"),
				write("Content-Length: 2\v\r\n", "{}"),
				write("Content-Length: 2\x00\r\n", "{}"),
				write("Content-Length: 9223372036854775808\r\n", "{}"),  // 2^63
				write("Content-Length: 18446744073709551618\r\n", "{}"), // 2^64 + 2
				write("Content-Length: 340282366920938463463374607431768211458\r\n", "{}"),
			),
			refused(bad("Content-Length must be one decimal number."),
				write("Content-Length: 0000000000000000002\r\n", "{}"), // more digits than any length has
			),
		),
	},
	{
		input: "`Transfer-Encoding` other than `chunked`, or twice", answer: "400, closed",
		rows: slices.Concat(
			refused(notHTTP(),
				write("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked,\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: ,chunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunkedx\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked;a=b\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: 'chunked'\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chun ked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: \r\n", "0\r\n\r\n"),
				write("Transfer-Encoding:\vchunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked\v\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked\x00\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding:\xa0chunked\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: chunked\x85\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: cow\r\n", "0\r\n\r\n"),
				write(chunkedTE+chunkedTE, "0\r\n\r\n"),
				write(chunkedTE+"transfer-encoding: identity\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding: identity\r\n"+chunkedTE, "0\r\n\r\n"),
				write(chunkedTE+"Transfer-Encoding: cow\r\n", "0\r\n\r\n"),
				line("POST /v2/transfers/1/transaction HTTP/1.0", chunkedTE)+"0\r\n\r\n",
				line("POST /v2/transfers/1/transaction HTTP/1.0", "Connection: keep-alive\r\n"+chunkedTE)+"0\r\n\r\n",
			),
			refused(badEncoding,
				write("Transfer-Encoding: identity\r\n", ""),
				write("Transfer-Encoding: identity\r\n", hidden),
			),
		),
	},
	{
		input: "`Transfer-Encoding: chunked` in any case, with blanks around", answer: "200",
		rows: passing(tellsWrite("{}"),
			write("Transfer-Encoding: CHUNKED\r\n", "2\r\n{}\r\n0\r\n\r\n"),
			write("transfer-encoding:chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
			write("TRANSFER-ENCODING: Chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
			write("Transfer-Encoding:\tchunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
			write("Transfer-Encoding: \t chunked \t\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		),
	},
	{
		input: "A body with `GET`, `HEAD` or `DELETE`, on a path that has the method", answer: "400, closed",
		rows: slices.Concat(
			refused(noBodyHere,
				list("Content-Length: 2\r\n")+"{}",
				list(fmt.Sprintf("Content-Length: %d\r\n", len(hidden)))+hidden,
				list("Content-Length: 2\r\n"), // answered before the body comes
				list(chunkedTE)+"2\r\n{}\r\n0\r\n\r\n",
				list(chunkedTE)+"0\r\n\r\n",
				list(chunkedTE)+"0\r\n\r\n"+hidden,
				list("Content-Length: 70000\r\n"),
				line("DELETE /v2/webhooks/1 HTTP/1.1", chunkedTE)+"0\r\n\r\n",
				line("DELETE /v2/webhooks/1 HTTP/1.1", "Content-Length: 2\r\n")+"{}",
				line("DELETE /v2/webhooks/1 HTTP/1.1", fmt.Sprintf("Content-Length: %d\r\n", len(hidden)))+hidden,
				line("DELETE /v2/webhooks/1 HTTP/1.1", chunkedTE)+"0\r\n\r\n"+hidden,
				line("DELETE /v2/webhooks/1 HTTP/1.1", "Expect: 100-continue\r\nContent-Length: 2\r\n"),
			),
			refused(headOf(noBodyHere),
				line("HEAD /health HTTP/1.1", "Content-Length: 2\r\n")+"{}",
				line("HEAD /health HTTP/1.1", chunkedTE)+"0\r\n\r\n",
			),
		),
	},
	{
		input: "`DELETE` without a body, `PATCH` with one, with an empty one or without", answer: "200, and core gets the same",
		rows: slices.Concat(
			passing(tells("DELETE /v2/webhooks/1", ""),
				line("DELETE /v2/webhooks/1 HTTP/1.1", ""), line("DELETE /v2/webhooks/1 HTTP/1.1", "Content-Length: 0\r\n"),
			),
			passing(tells("PATCH /v2/webhooks/1", ""), amend("", ""), amend("Content-Length: 0\r\n", ""), amend(chunkedTE, "0\r\n\r\n")),
			passing(tells("PATCH /v2/webhooks/1", "{}"), amend("Content-Length: 2\r\n", "{}"), amend(chunkedTE, "2\r\n{}\r\n0\r\n\r\n")),
		),
	},
	{
		input: "`Content-Length: 0` with `GET`, a length with zeros before it", answer: "200",
		rows: slices.Concat(
			passing(tellsList(), list("Content-Length: 0\r\n"), list("Content-Length: 000\r\n")),
			passing(tellsWrite("{}"), write("Content-Length: 0002\r\n", "{}"), write("Content-Length:\t2 \r\n", "{}")),
		),
	},
	{
		input: "A request within the body of another", answer: "200, and core is told of one",
		rows: slices.Concat(
			passing(tellsWrite(hidden),
				write(fmt.Sprintf("Content-Length: %d\r\n", len(hidden)), hidden),
				write(chunkedTE, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)),
			),
			passing(tellsWrite("0\r\n\r\n"+hidden),
				write(fmt.Sprintf("Content-Length: %d\r\n", 5+len(hidden)), "0\r\n\r\n"+hidden),
			),
			passing(tells("PATCH /v2/webhooks/1", hidden),
				amend(fmt.Sprintf("Content-Length: %d\r\n", len(hidden)), hidden),
				amend(chunkedTE, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)),
			),
		),
	},
	{
		input: "A body over 64 KiB", answer: "413, closed",
		rows: refused(tooLong(),
			write("Content-Length: 65537\r\n", ""),
			amend("Content-Length: 65537\r\n", ""),
			write("Content-Length: 65537\r\n", strings.Repeat(" ", 65537)),
			write("Content-Length: 999999999999999999\r\n", ""),
			write("Expect: 100-continue\r\nContent-Length: 65537\r\n", ""),
			write(chunkedTE, "10001\r\n"),
			write(chunkedTE, "10001\r\n"+strings.Repeat(" ", 65537)+"\r\n0\r\n\r\n"),
			write(chunkedTE, strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 16)+"1\r\n \r\n0\r\n\r\n"),
			write(chunkedTE, "FFFFFFFFFFFFFFF\r\n"),
		),
	},
	{
		input: "A body of 64 KiB", answer: "200",
		rows: passing(tellsWrite(strings.Repeat(" ", 65536)),
			write("Content-Length: 65536\r\n", strings.Repeat(" ", 65536)),
			write(chunkedTE, "10000\r\n"+strings.Repeat(" ", 65536)+"\r\n0\r\n\r\n"),
			write(chunkedTE, strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 16)+"0\r\n\r\n"),
		),
	},
	{
		input: "A compressed body", answer: "415, closed",
		rows: refused(unclear(415, "UNSUPPORTED_MEDIA_TYPE", "The body must not be compressed."),
			write("Content-Encoding: gzip\r\nContent-Length: 2\r\n", "{}"),
			amend("Content-Encoding: gzip\r\nContent-Length: 2\r\n", "{}"),
			write("Content-Encoding: br\r\n"+chunkedTE, "2\r\n{}\r\n0\r\n\r\n"),
			write("Content-Encoding: identity, gzip\r\nContent-Length: 2\r\n", "{}"),
			write("Content-Encoding:\r\nContent-Length: 2\r\n", "{}"),
		),
	},
	{
		input: "`Content-Encoding: identity`, or any without a body", answer: "200",
		rows: slices.Concat(
			passing(tellsWrite("{}"), write("Content-Encoding: Identity\r\nContent-Length: 2\r\n", "{}")),
			passing(tellsList(), list("Content-Encoding: gzip\r\n")),
		),
	},
	{
		input: "Three requests at once", answer: "three answers in order, each limited",
		shown: threeAtOnce,
	},
}

func threeAtOnce(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
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
	var told []string
	for _, r := range core.Requests() {
		told = append(told, r.Method+" "+r.Target)
	}
	if diff := cmp.Diff([]string{"GET /v2/tokens", "GET /v2/chains"}, told); diff != "" {
		t.Error(diff)
	}
}
