package edge_test

import (
	"slices"
	"strings"
)

var (
	foldedHeader    = bad("Header lines must not be folded.")
	endsInLF        = bad("Header lines must end in CR LF.")
	malformedHeader = bad("A header line is malformed.")
	repeatedHeader  = bad("A header that may stand only once is repeated.")
	badHost         = bad("There must be one Host header with a host name.")
	tooManyLines    = unclear(431, "HEADERS_TOO_LARGE", "The request has too many header lines.")
)

// lists are lists with the given header lines, one each.
func lists(headers ...string) []string {
	requests := make([]string, 0, len(headers))
	for _, h := range headers {
		requests = append(requests, list(h+"\r\n"))
	}
	return requests
}

// hosts are lists with the given Host alone.
func hosts(names ...string) []string {
	requests := make([]string, 0, len(names))
	for _, name := range names {
		requests = append(requests, "GET /v2/tokens HTTP/1.1\r\nHost:"+name+"\r\n"+withKey+"\r\n")
	}
	return requests
}

// padded is a list whose request line and headers are n bytes long.
func padded(n int) string {
	bare := list("X-Pad: \r\n")
	return list("X-Pad: " + strings.Repeat("a", n-len(bare)) + "\r\n")
}

var headerRules = []rule{
	{
		input: "A header line that begins with a blank or tab", answer: "400, closed",
		rows: slices.Concat(
			refused(foldedHeader, lists(
				"X-One: a\r\n b",
				"X-One: a\r\n\tb",
				"X-One: a\r\n Transfer-Encoding: chunked",
				"X-One:\r\n \r\n\tb",
				"X-One: a\r\n ",
			)...),
			refused(notHTTP(),
				"GET /v2/tokens HTTP/1.1\r\n Host: a\r\n"+withKey+"\r\n",
				"GET /v2/tokens HTTP/1.1\r\n\tX-One: b\r\nHost: a\r\n"+withKey+"\r\n",
				write("Content-Length: 1\r\n 0\r\n", "{}"),
				list("Host:\r\n a\r\n"),
			),
		),
	},
	{
		input: "LF or CR alone between header lines", answer: "400, closed",
		rows: slices.Concat(
			refused(endsInLF, lists(
				"X-One: a\nX-Two: b",
				"X-One: a\n",
				"X-One: a\nTransfer-Encoding: chunked",
				"X-One: a\n\nGET /v2/tokens HTTP/1.1",
				"X-One: a\r\n\nX-Two: b",
				"X-One: a\n\r\nX-Two: b",
			)...),
			refused(notHTTP(), lists(
				"X-One: a\rX-Two: b",
				"X-One: a\r",
				"X-One: a\r\r",
				"X-One: \ra",
				"\rX-One: a",
				"X-One\r: a",
			)...),
			refused(notHTTP(),
				"GET /v2/tokens HTTP/1.1\r\n\nHost: a\r\n"+withKey+"\r\n",
				"GET /v2/tokens HTTP/1.1\r\n\r\nHost: a\r\n"+withKey+"\r\n",
			),
		),
	},
	{
		input: "NUL or another control character in a value", answer: "400, closed",
		rows: refused(notHTTP(), lists(
			"X-One: a\x00b", "X-One: \x01", "X-One: a\vb", "X-One: a\fb", "X-One: \x1b[2J", "X-One: a\x7f", "X-Api-Key: \x00",
		)...),
	},
	{
		input: "A tab or bytes beyond ASCII in a value that core does not get", answer: "200",
		rows: passing(tellsList(), lists(
			"X-One: a\tb", "X-One: é", "X-One: \x80\x85\xa0\xff", "X-One:", "X-One:a:b:", "X_One: a", "!#$%&'*+-.^_`|~: a",
		)...),
	},
	{
		input: "A header without colon or name, with a blank or another character in the name or before the colon", answer: "400, closed",
		rows: slices.Concat(
			refused(notHTTP(), lists(
				"nothing",
				": a",
				"X-One : a",
				"X-One\t: a",
				"Transfer-Encoding : chunked",
				"Content-Length : 2",
				"Content-Length\t: 2",
				"X-\x00: a",
				"X-\x7f: a",
				"X-One\v: a",
				"X-É: a",
				"X-One\xa0: a",
				"X-Api-Key\u200b: a",
				"X(One): a",
				"X/One: a",
				"X;One: a",
				`"X-One": a`,
				"X@One: a",
				"X[1]: a",
				"GET /v2/tokens HTTP/1.1: a",
			)...),
			refused(notHTTP(),
				write("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
				write("Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n"),
			),
			refused(malformedHeader, lists("X One: a", "Transfer Encoding: chunked")...),
		),
	},
	{
		input: "`Host` missing, empty, twice, with a user, a path, a blank, a bad port or a bad address", answer: "400, closed",
		rows: slices.Concat(
			refused(notHTTP(),
				"GET /v2/tokens HTTP/1.1\r\n"+withKey+"\r\n",
				list("Host: a\r\n"),
				list("host: b\r\n"),
				"GET /v2/tokens HTTP/1.1\r\nHost : a\r\n"+withKey+"\r\n",
			),
			refused(badHost,
				"GET /v2/tokens HTTP/1.0\r\n"+withKey+"\r\n", "GET /healthy HTTP/1.0\r\n\r\n", "POST /health HTTP/1.0\r\n\r\n", "GET /health HTTP/1.0\r\nHost: \r\n\r\n",
			),
			anyRefusal(hosts(
				"", "  ", " a b", " a\tb", " a,b", " a, b", " a;b", " a@b", " user:password@a", " a/b", " a?b", " a#b", ` a\b`,
				" http://a", " a%41", " a%00", " é", " \xff", ` "a"`, " (a)", " *",
				" a:", " a:0", " a:65536", " a:99999999999999999999", " a:+80", " a:-1", " a:8o", " a:80 ,b", " a:80:80", " :80", " :",
				" ::1", " [::1", " ::1]", " [::1]a", " [::1]80", " [::1]:", " [::1]:0", " [::1%25lo]", " [::1%lo]",
				" [127.0.0.1]", " [v1.a]", " []", " [a]",
			)...),
		),
	},
	{
		input: "`Host` that is a name, an IPv4 address or an IPv6 address in brackets, with a port or without", answer: "200",
		rows: passing(tellsList(), hosts(
			" a", "a", " \ta\t ", " a:80", " API.Example.com.:65535", " a_b-c", " 127.0.0.1:1", " [::1]", " [::1]:8080",
			" [2001:DB8::1]", " [::ffff:127.0.0.1]:80",
		)...),
	},
	{
		input: "More than 64 header lines", answer: "431, closed",
		rows: refused(tooManyLines, list(strings.Repeat("X-One: a\r\n", 63)), list(strings.Repeat("A:\r\n", 2000))),
	},
	{
		input: "A request line and headers over 8 KiB", answer: "431, closed",
		rows: refused(headersTooLong(),
			padded(8193),
			list("X-One: "+strings.Repeat("a", 9000)),
			list(strings.Repeat("a", 9000)+": b"),
			list("Cookie: "+strings.Repeat("a=b; ", 4000)),
			list(strings.Repeat("A:\r\n", 3000)),
		),
	},
	{
		input: "64 header lines; a request line and headers of 8 KiB", answer: "200",
		rows: passing(tellsList(), list(strings.Repeat("X-One: a\r\n", 62)), padded(8192)),
	},
	{
		input: "`Authorization`, `Content-Type`, `Content-Encoding`, `Cookie`, `Expect`, `Idempotency-Key`, `Origin` or `User-Agent` twice", answer: "400, closed",
		rows: refused(repeatedHeader,
			write("Content-Type: application/json\r\nContent-Type: application/json\r\n", ""),
			write("Content-Type: application/json\r\nCONTENT-TYPE: text/plain\r\n", ""),
			write("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", ""),
			write("Idempotency-Key: a\r\nIdempotency-Key: a\r\n", ""),
			write("Idempotency-Key: a\r\nidempotency-key: b\r\n", ""),
			write("Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 2\r\n", ""),
			list("User-Agent: a\r\nUser-Agent: b\r\n"),
			list("Cookie: a=b\r\nCookie: a=c\r\n"),
			list("Authorization: Basic YTpi\r\nAuthorization: Basic YTpi\r\n"),
			list("Origin: https://a\r\nOrigin: https://b\r\n"),
		),
	},
	{
		input: "An empty `Idempotency-Key`", answer: "400, closed",
		rows: refused(bad("The Idempotency-Key header is empty."), write("Idempotency-Key:\r\n", ""), write("Idempotency-Key: \t \r\n", "")),
	},
	{
		input:  "Headers that say who asks or from where: `X-Account-Id`, `X-Key-Id`, `X-Forwarded-For`, …",
		answer: "200, and core gets the gateway's",
		rows: passing(tellsList(), lists(
			"X-Account-Id: 1", "x-account-id: 1\r\nX-ACCOUNT-ID: 2", "X_Account_Id: 1", "X-Key-Id: 1", "X-Key-Env: live",
			"X-Gateway-Secret: guess", "X-Gateway-Secret: a\r\nX-Gateway-Secret: b",
			"X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: https",
			"X-Forwarded-Host: evil", "X-Forwarded-Port: 1", "X-Forwarded-Prefix: /v2", "X-Forwarded: for=203.0.113.9",
			"Forwarded: for=203.0.113.9;proto=https", "X-Real-Ip: 203.0.113.9", "True-Client-Ip: 203.0.113.9",
			"Cf-Connecting-Ip: 203.0.113.9", "X-Client-Ip: 203.0.113.9", "X-Original-Forwarded-For: 203.0.113.9",
			"Via: 1.1 a", "From: a@b", "Authorization: Bearer a", "Proxy-Authorization: Basic YTpi", "Cookie: session=1",
			"Origin: https://evil.example", "Referer: https://evil.example/", "Sec-Fetch-Site: same-origin",
		)...),
	},
	{
		input:  "Headers that would change the method or the path: `X-HTTP-Method-Override`, `X-Original-URL`, …",
		answer: "200, and core does not get them",
		rows: passing(tellsList(), lists(
			"X-HTTP-Method-Override: POST", "X-HTTP-Method: POST", "X-Method-Override: DELETE", "X-Original-URL: /internal/chains",
			"X-Rewrite-URL: /internal/chains", "X-Original-URI: /", "X-Forwarded-Uri: /", "Destination: /",
			"X-Original-Host: b", "X-Host: b", "X-Forwarded-Server: b", "Max-Forwards: 0", "Range: bytes=0-1", "If-Match: a",
			"If-Unmodified-Since: a", "If-Range: a", "Cache-Control: only-if-cached", "Pragma: no-cache", "Date: now",
			"Surrogate-Capability: a=b",
		)...),
	},
	{
		input:  "Headers for the next hop alone: `Connection`, whatever it names, `Keep-Alive`, `TE`, …",
		answer: "200, and core does not get them",
		rows: slices.Concat(
			passing(tellsList(), lists(
				"Connection: keep-alive", "Connection: x-api-key", "Connection: X-Account-Id, X-Key-Id, X-Gateway-Secret",
				"Connection: X-Request-Id, X-Forwarded-For", "Connection: host, content-length", "Connection: upgrade",
				"Connection: ,,", "Connection:", "Proxy-Connection: close", "Keep-Alive: timeout=5, max=1000", "TE: trailers",
				"TE: chunked;q=1", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", "Proxy-Authenticate: Basic", "Alt-Used: a",
			)...),
			passing(tellsWrite("{}"),
				write("Connection: Transfer-Encoding\r\n"+chunkedTE, "2\r\n{}\r\n0\r\n\r\n"),
				write("Connection: Content-Length\r\nContent-Length: 2\r\n", "{}"),
			),
		),
	},
	{
		input:  "What core may hear: `Accept`, `Content-Type`, `Idempotency-Key`, `If-None-Match`, `Prefer`, `User-Agent`, …",
		answer: "200, and core gets it as it is",
		rows: passing(
			tellsWrite("{}",
				"Accept: */*", "Accept-Encoding: gzip;q=0", "Accept-Language: en", `Content-Type: text/plain; charset="é"`,
				`Idempotency-Key: "a b"`, `If-None-Match: W/"a", "b"`, "If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT",
				"Prefer: return=minimal, wait=5", "User-Agent: a/1 (b; c)"),
			write("ACCEPT: */* \r\naccept-encoding:gzip;q=0\r\nAccept-Language:\ten\r\nContent-Length: 2\r\n"+
				"content-type: text/plain; charset=\"é\"\r\nIdempotency-Key: \"a b\"\r\nIf-None-Match: W/\"a\", \"b\"\r\n"+
				"If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\nprefer: return=minimal, wait=5\r\nuser-agent: a/1 (b; c)\r\n", "{}"),
		),
	},
}

// anyRefusal makes rows of inputs that fasthttp refuses or else the guard.
func anyRefusal(sent ...string) []row {
	rows := refused(badHost, sent...)
	for i := range rows {
		rows[i].or = notHTTP()
	}
	return rows
}
