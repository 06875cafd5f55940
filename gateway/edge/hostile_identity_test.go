package edge_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

var (
	repeatedKey    = bad("The x-api-key header is repeated.")
	twoCredentials = bad("An API key and a client token must not stand together.")
)

// bare are lists without the rows' key but with the given header lines, one each.
func bare(headers ...string) []string { return withoutKey(lists(headers...)...) }

var random = strings.Repeat("a", 64)

var malformedKeys = refused(badKey(), bare(
	"x-api-key: sk_test_"+random[1:], "x-api-key: sk_test_"+random+"a", "x-api-key: sk_test_", "x-api-key:", "x-api-key: \t ",
	"x-api-key: sk_prod_"+random, "x-api-key: SK_TEST_"+random, "x-api-key: Sk_test_"+random, "x-api-key: sk-test-"+random,
	"x-api-key: sk_test"+random, "x-api-key: "+random, "x-api-key: "+strings.ToUpper(rowKey),
	"x-api-key: sk_test_"+random[1:]+"-", "x-api-key: sk_test_"+random[1:]+"_", "x-api-key: sk_test_"+random[2:]+"%61",
	"x-api-key: sk_test_"+random[2:]+"é", "x-api-key: sk_test_"+random[1:]+"\xff", "x-api-key: "+rowKey+"\xa0", "x-api-key: \x85"+rowKey,
	"x-api-key: sk_test_"+random[1:]+"\t", "x-api-key: sk_test_"+random[2:]+"\ta", "x-api-key: sk_test_"+random[2:]+" a",
	"x-api-key: "+rowKey+","+rowKey, "x-api-key: "+rowKey+", sk_live_"+random, "x-api-key: "+rowKey+" "+rowKey,
	"x-api-key: "+rowKey+"\t"+rowKey, "x-api-key: "+rowKey+";a",
	`x-api-key: "`+rowKey+`"`, "x-api-key: Bearer "+rowKey, "x-api-key: *", "x-api-key: null", "x-api-key: ' or 1=1 --",
	"x-api-key: sk_live_"+strings.Repeat("a", 4096),
)...)

var identityRules = []rule{
	{
		input: "A key anywhere but in `x-api-key`: `x_api_key`, a cookie, the query, `Authorization`, the body", answer: "401",
		rows: slices.Concat(
			refused(noKey(), bare(
				"X-One: a", "x_api_key: "+rowKey, "X-Api_Key: "+rowKey, "xapikey: "+rowKey, "Api-Key: "+rowKey, "X-Api-Keys: "+rowKey,
				"XX-Api-Key: "+rowKey, "Cookie: x-api-key="+rowKey, "Authorization: Bearer "+rowKey, "Authorization: "+rowKey,
				"Connection: x-api-key", "X-Account-Id: account\r\nX-Key-Id: key",
			)...),
			refused(noKey(), withoutKey(paths("/v2/tokens?api_key="+rowKey, "/v2/tokens?x-api-key="+rowKey)...)...),
			refused(noKey(), withoutKey(write("Content-Length: 72\r\n", rowKey))...),
		),
	},
	{
		input: "`x-api-key` twice, in any case", answer: "400, closed",
		rows: slices.Concat(
			refused(repeatedKey, lists(
				"x-api-key: "+rowKey, "X-API-KEY: "+rowKey, "X-Api-Key: sk_live_"+random, "x-api-key:", "X-Api-Key: other",
			)...),
			refused(repeatedKey, line("GET /health HTTP/1.1", withKey), line("GET /nothing HTTP/1.1", withKey)),
		),
	},
	{
		input: "`x-api-key` and a client token in `Authorization` together", answer: "400, closed",
		rows: refused(twoCredentials, lists("Authorization: Bearer "+rowToken, "authorization: bearer ct_", "AUTHORIZATION: BEARER \t "+rowToken)...),
	},
	{
		input: "`x-api-key` and any other `Authorization`, which is another service's", answer: "200",
		rows: passing(tellsList(), lists("Authorization: Basic YTpi", "Authorization: Bearer", "Authorization: "+rowToken, "Authorization: Bearer CT_")...),
	},
	{
		input: "A client token that is cut, changed, repeated or of another secret", answer: "401, and nobody looks its key up",
		shown: forgedTokensAreNotLookedUp,
	},
	{
		input: "A client token with another method, intent, spelling of its intent or path", answer: "403, and core is not told",
		shown: tokensAllowNothingElse,
	},
	{
		input:  "`Origin` with a client token: `null`, `*`, two in one, another scheme, host or port than a listed one",
		answer: "403, and core is not told", shown: foreignOriginsAreRefused,
	},
	{
		input: "`OPTIONS` as a browser asks it, on the three paths of client tokens", answer: "204, and nobody is asked",
		shown: preflightsAreAnswered,
	},
	{
		input:  "`OPTIONS` on other paths, with a key, or without `Origin` or `Access-Control-Request-Method`",
		answer: "401, 404 or 405", shown: otherOptionsAreNoPreflights,
	},
	{
		input: "A key of 63 or 65 characters, with another prefix or other characters, two in one, 4 kB", answer: "403, and nobody looks it up",
		rows: malformedKeys,
	},
	{
		input: "A key with NUL in it", answer: "400, closed",
		rows: refused(notHTTP(), bare("x-api-key: "+rowKey+"\x00", "x-api-key: \x00"+rowKey)...),
	},
	{
		input: "A key with blanks around, under a name in any case", answer: "200",
		rows: passing(tellsList(), bare("x-api-key:"+rowKey, "X-API-KEY: \t "+rowKey+" \t ", "X-Api-Key:\t"+rowKey)...),
	},
	{
		input: "A well-formed key that nobody has", answer: "403",
		rows: refused(badKey(), bare("x-api-key: sk_test_"+random, "x-api-key: sk_live_"+rowKey[8:], "x-api-key: "+rowKey[:71]+"2")...),
	},
	{
		input: "A key outside its networks, with an `X-Forwarded-For` that no trusted proxy sent", answer: "403, and core is not told",
		shown: forwardedForIsNotTrusted,
	},
	{
		input: "Malformed keys without end", answer: "403, and core hears of none",
		shown: malformedKeysAreNotLookedUp,
	},
}

func forwardedForIsNotTrusted(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, headers := range []string{
		"", "X-Forwarded-For: 10.0.0.1\r\n", "X-Forwarded-For: 10.0.0.1, 127.0.0.1\r\n", "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.1\r\n",
		"X-Real-IP: 10.0.0.1\r\n", "Forwarded: for=10.0.0.1\r\n", "True-Client-IP: 10.0.0.1\r\n", "CF-Connecting-IP: 10.0.0.1\r\n",
	} {
		if diff := cmp.Diff(outsideNetworks("127.0.0.1"), g.send(t, request("GET", "/v2/tokens", apiKey(key)+headers, ""))); diff != "" {
			t.Errorf("%q: %s", headers, diff)
		}
	}
	if heard := core.Requests(); len(heard) != 0 {
		t.Errorf("core is told of %d requests", len(heard))
	}
}

func malformedKeysAreNotLookedUp(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	for _, row := range malformedKeys {
		if diff := cmp.Diff(row.want, g.send(t, row.sent)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
	if n := core.LookUps.Load(); n != 0 {
		t.Errorf("%d look-ups", n)
	}
	// The count does count.
	g.send(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), ""))
	if n := core.LookUps.Load(); n != 1 {
		t.Errorf("%d look-ups of a well-formed key", n)
	}
}
