package edge_test

import (
	"slices"
	"strings"
)

var (
	badTarget = bad("The request target must be a path.")
	badPath   = bad("The path holds characters that no path of this service has.")
	badQuery  = bad("The query holds characters that must be percent-encoded.")
)

// paths are requests for the given targets.
func paths(targets ...string) []string {
	requests := make([]string, 0, len(targets))
	for _, target := range targets {
		requests = append(requests, line("GET "+target+" HTTP/1.1", ""))
	}
	return requests
}

// withoutKey takes the rows' key out of requests.
func withoutKey(requests ...string) []string {
	bare := make([]string, 0, len(requests))
	for _, r := range requests {
		bare = append(bare, strings.Replace(r, withKey, "", 1))
	}
	return bare
}

// A target is matched as it came and passed on as it came, so it must be one that nobody would decode or clean up.
var targetRules = []rule{
	{
		input: "A target that is no path: with a scheme or host, `*`", answer: "400, closed",
		rows: slices.Concat(
			refused(badTarget, paths("http://a/v2/tokens", "http://user@a/v2/tokens", "HTTPS://a/v2/tokens", "*")...),
			refused(badTarget, line("OPTIONS * HTTP/1.1", "")),
			refused(notHTTP(), paths(
				"a:80", "v2/tokens", "?a", ".", `\v2\tokens`, "%2fv2/tokens", "://a/v2/tokens", "1http://a/",
			)...),
		),
	},
	{
		input: "`/v2/../health`, `/v2/./tokens`, `//v2/tokens`", answer: "400, closed",
		rows: refused(badPath, paths(
			"/v2/../health", "/health/../v2/tokens", "/v2/tokens/..", "/..", "/../v2/tokens", "/v2/..", "/v2/transfers/../tokens",
			"/v2/./tokens", "/v2/tokens/.", "/.",
			"//v2/tokens", "/v2//tokens", "/v2/tokens//", "//", "//a/v2/tokens", "///v2/tokens",
		)...),
	},
	{
		input: "`%`, `;`, `\\`, `#` or a character beyond ASCII in the path", answer: "400, closed",
		rows: slices.Concat(
			refused(badPath, paths(
				"/v2/%2e%2e/health", "/v2/%2E%2E/health", "/v2/.%2e/health", "/%2e%2e/v2", "/v2/%252e%252e/health",
				"/v2/%c0%ae%c0%ae/health", "/v2%2ftokens", "/v2/%5ctokens", "/%76%32/tokens",
				"/v2/tokens%00", "/v2/tokens%0d%0a", "/v2/tokens%zz", "/v2/tokens%", "/v2/tokens%2",
				"/v2/tokens;x", "/v2;x/tokens", "/v2/..;/health", "/v2/tokens;jsessionid=1",
				`/v2\tokens`, `/v2/..\health`, `/\v2/tokens`,
				"/v2/tokens#x", "/v2/tokens#", "/v2/tokens#?a",
				"/v2/tokens/é", "/v2/tokens\xff", "/v2/tokens\x85", "/v2/tokens\xa0", "/v2/tokens/\u2024\u2024/", "/v2\uff0ftokens",
				`/v2/tokens"`, "/v2/tokens<x>", "/v2/tokens{id}", "/v2/tokens|", "/v2/tokens^", "/v2/tokens`", "/v2/[tokens]",
			)...),
			refused(notHTTP(), paths(
				"/v2/tokens\x01", "/v2/tokens\x1f", "/v2/tokens\x7f", "/v2/\ttokens", "/v2/tokens\r",
			)...),
		),
	},
	{
		input: "A control character, a blank, `#` or a character beyond ASCII in the query", answer: "400, closed",
		rows: slices.Concat(
			refused(badQuery, paths(
				"/v2/tokens?a#b", "/v2/tokens?#", "/v2/tokens?a=é", "/v2/tokens?\xff", "/v2/tokens?\x85", "/v2/tokens?\xa0",
			)...),
			refused(notHTTP(), paths(
				"/v2/tokens?\x00", "/v2/tokens?\x01", "/v2/tokens?\x7f", "/v2/tokens?a\tb", "/v2/tokens?a b", "/v2/tokens?a\rb",
			)...),
		),
	},
	{
		input: "Any other query, such as `??`, `?a=%zz`, `?u=http://user@b/`", answer: "200, and core gets it as it is",
		rows: asTheyAre(
			"/v2/tokens?", "/v2/tokens??", "/v2/tokens?a?b=c/../d//", "/v2/tokens?a=%zz", "/v2/tokens?a=%00", "/v2/tokens?a=%2e%2e%2F",
			"/v2/tokens?u=http://user@b:80/c", "/v2/tokens?a;b", "/v2/tokens?a[]=1&a[]=2", "/v2/tokens?a=1&a=2", "/v2/tokens?&&=",
			"/v2/tokens?a+b", `/v2/tokens?"<>\^{|}`+"`", "/v2/tokens?api_key="+rowKey,
		),
	},
	{
		input: "A target so long that the headers do not fit", answer: "431, closed",
		rows: slices.Concat(
			refused(headersTooLong(), paths("/v2/tokens?"+strings.Repeat("a", 9000), "/"+strings.Repeat("a", 9000))...),
			refused(headersTooLong(), "GET /"+strings.Repeat("a", 9000)),
		),
	},
	{
		input: "`/V2/tokens`, `/health/`, `/internal/chains`: a path that is like another", answer: "404",
		rows: slices.Concat(
			refused(notFound(), paths(
				"/v2/Tokens", "/v2/tokens/", "/v2", "/v2/", "/v2.0/tokens", "/v2/internal/chains", "/v2/transfers/", "/v2/transfers/1/2",
				"/v2/events/", "/v2/events/1/2", "/v2/webhooks/", "/v2/Webhooks", "/v2/webhooks/1/", "/v2/webhooks/1/2", "/v2/webhooks/1/secret",
				"/v2/webhooks/1/deliveries/", "/v2/webhooks/1/deliveries/2/", "/v2/webhooks/1/deliveries/2/retry/", "/v2/webhooks/1/deliveries/2/3/retry",
			)...),
			refused(notFound(), withoutKey(paths(
				"/V2/tokens", "/V2/health", "/v1/tokens", "/v/2/tokens", "/tokens", "/.v2/tokens", "/-/v2/tokens",
				"/health/", "/Health", "/health.", "/openapi.json/", "/Console", "/consoles", "/autH/x", "/auth", "/x",
				"/internal/chains", "/internal/keys/verify", "/internal/event-accounts", "/metrics", "/debug/pprof/",
			)...)...),
		),
	},
	{
		input: "`/v2/Tokens`, `/v2x`, `/v2/health/`: anything below or like `/v2` without a key", answer: "401",
		rows: slices.Concat(
			refused(noKey(), withoutKey(paths(
				"/v2", "/v2/", "/v2x", "/v2.", "/v2?a", "/v2health", "/v2/Tokens", "/v2/tokens/", "/v2/nothing", "/v2/transfers/1/2", "/v2/webhooks/1/2",
				"/v2/health/", "/v2/health.", "/v2/Health", "/v2/openapi.json/",
			)...)...),
			refused(noKey(), withoutKey(
				line("POST /v2/health HTTP/1.1", ""), line("OPTIONS /v2/tokens HTTP/1.1", ""), line("PUT /v2/openapi.json HTTP/1.1", ""),
			)...),
		),
	},
}

// asTheyAre are requests that pass, with targets that core gets byte for byte.
func asTheyAre(targets ...string) []row {
	var rows []row
	for _, target := range targets {
		rows = append(rows, passing(tells("GET "+target, ""), paths(target)...)...)
	}
	return rows
}
