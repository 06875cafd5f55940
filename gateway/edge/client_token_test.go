package edge_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// rowToken is a token of the rows' key that is valid for longer than these tests.
var rowToken = tokenOf(mustParse(rowKey), time.Now().Add(24*time.Hour))

// intentID is the intent of the tests' tokens.
const intentID = "0199c0de-0000-7000-8000-00000000abcd"

// tokenOf is a token of a key for the tests' intent that expires at a time.
func tokenOf(key apikey.Key, expires time.Time) string {
	return clienttoken.NewMinter(coretest.Secret).Mint(clienttoken.Claims{Key: key.Hash(), TransferID: uuid.MustParse(intentID), Expires: expires})
}

// bearer is the header of a token of a key that is valid now.
func bearer(key apikey.Key) string {
	return "Authorization: Bearer " + tokenOf(key, time.Now().Add(time.Hour)) + "\r\n"
}

// tokenRequests are what a token may do.
var tokenRequests = []string{
	"GET /v2/transfers/" + intentID, "HEAD /v2/transfers/" + intentID, "GET /v2/transfers/" + intentID + "/preflight",
	"HEAD /v2/transfers/" + intentID + "/preflight", "POST /v2/transfers/" + intentID + "/transaction",
}

// ask makes a request named by its method and target.
func (g *gateway) ask(t *testing.T, what, headers string) response {
	t.Helper()
	method, target, _ := strings.Cut(what, " ")
	body := ""
	if method == http.MethodPost {
		headers, body = headers+jsonType, `{}`
	}
	return g.send(t, request(method, target, headers, body))
}

func tokenRefused() response {
	return refusal(403, `{"code":"CLIENT_TOKEN_NOT_ALLOWED","message":"A client token reads, preflights and reports one transfer, which is named by its id. `+
		`Have your server do this with its API key."}`)
}

func badToken(message string) response {
	return refusal(401, `{"code":"INVALID_CLIENT_TOKEN","message":"`+message+` Get another one from your server."}`,
		"Www-Authenticate", `Bearer error="invalid_token"`)
}

const (
	malformedToken = "This client token is malformed or was not made by this service."
	expiredToken   = "This client token has expired."
	endedToken     = "This client token has ended with the API key that made it."
)

func TestClientToken(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	// The token's bearer is elsewhere than the key's owner.
	as := core.Put(key, wire.VerifiedKey{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, what := range tokenRequests {
		if got := g.ask(t, what, bearer(key)); got.Status != 200 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := g.ask(t, tokenRequests[0], strings.Replace(bearer(key), "Bearer", "bEARER  ", 1)); got.Status != 200 {
		t.Errorf("another spelling of the scheme: %+v", got)
	}
	for _, heard := range core.Requests() {
		got := []string{heard.Header.Get("X-Account-Id"), heard.Header.Get("X-Key-Id"), heard.Header.Get("X-Key-Env"), heard.Header.Get("Authorization")}
		if diff := cmp.Diff([]string{as.AccountID, as.KeyID, "test", ""}, got); diff != "" {
			t.Errorf("core is told (-want +got):\n%s", diff)
		}
	}
	asynctest.Eventually(t, "the requests are logged", func() bool {
		return strings.Count(g.log.String(), `"key_id":"`+as.KeyID+`","client_token":true`) == len(tokenRequests)+1
	})
	if strings.Contains(g.log.String(), clienttoken.Prefix) {
		t.Errorf("the log has a token:\n%s", g.log.String())
	}
}

// tokensAllowNothingElse tries other methods, other intents, other names of the token's own intent, and other routes.
func tokensAllowNothingElse(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := core.AddKey(network.Test)
	before := len(core.Requests())
	others := []string{
		"GET /v2/transfers/" + strings.ToUpper(intentID), "GET /v2/transfers/" + uuid.NewString(), "POST /v2/transfers/" + uuid.NewString() + "/transaction",
		"GET /v2/transfers/0x" + strings.Repeat("a", 64) + "/preflight", "GET /v2/transfers/" + intentID + "/", "GET /v2/nothing", "GET /v2/transfers/",
	}
	for _, path := range wire.Paths {
		if !strings.HasPrefix(path.Pattern, "/v2/") || path.Pattern == "/v2/health" || path.Pattern == "/v2/openapi.json" {
			continue
		}
		target := strings.NewReplacer("{id}", intentID, "{eventId}", intentID).Replace(path.Pattern)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if what := method + " " + target; !slices.Contains(tokenRequests, what) {
				others = append(others, what)
			}
		}
	}
	for _, what := range others {
		want := tokenRefused()
		if strings.HasPrefix(what, "HEAD ") {
			want = headOf(want)
		}
		if diff := cmp.Diff(want, g.ask(t, what, bearer(key))); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if after := len(core.Requests()); after != before {
		t.Errorf("core received %d requests", after-before)
	}
}

// another is another character of base64url.
func another(c rune) rune {
	if c == 'A' {
		return 'B'
	}
	return 'A'
}

func forgedTokensAreNotLookedUp(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := core.AddKey(network.Test)
	token := tokenOf(key, time.Now().Add(time.Hour))
	other := clienttoken.NewMinter("another secret").Mint(clienttoken.Claims{
		Key: key.Hash(), TransferID: uuid.MustParse(intentID), Expires: time.Now().Add(time.Hour),
	})
	for credentials, want := range map[string]response{
		"Bearer ct_": badToken(malformedToken), "Bearer " + token[:len(token)-1]: badToken(malformedToken), "Bearer " + token + "A": badToken(malformedToken),
		"Bearer " + token + " " + token: badToken(malformedToken), "Bearer " + token + "," + token: badToken(malformedToken),
		"Bearer " + token[:20] + strings.Map(another, token[20:21]) + token[21:]: badToken(malformedToken), "Bearer " + other: badToken(malformedToken),
		"Bearer " + tokenOf(key, time.Now().Add(-time.Second)): badToken(expiredToken),
		"Bearer": noKey(), "Bearer " + key.Reveal(): noKey(), "Basic " + token: noKey(), token: noKey(), "Bearer" + token: noKey(), "Bearer CT_" + token[3:]: noKey(),
	} {
		if diff := cmp.Diff(want, g.ask(t, tokenRequests[0], "Authorization: "+credentials+"\r\n")); diff != "" {
			t.Errorf("%s: %s", credentials, diff)
		}
	}
	if diff := cmp.Diff(badKey(), g.ask(t, tokenRequests[0], "x-api-key: "+token+"\r\n")); diff != "" {
		t.Errorf("in place of a key: %s", diff)
	}
	if n := core.LookUps.Load(); n != 0 {
		t.Errorf("core looked %d keys up", n)
	}
}

func TestClientToken_KeyEnded(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	revoked := core.AddKey(network.Test)
	core.Revoke(revoked)
	for name, key := range map[string]apikey.Key{"revoked": revoked, "unknown": apikey.New(network.Test)} {
		if diff := cmp.Diff(badToken(endedToken), g.ask(t, tokenRequests[0], bearer(key))); diff != "" {
			t.Errorf("a key that is %s: %s", name, diff)
		}
	}
}

// A token that was used ends within as much time as its key does.
func TestClientToken_KeyRevoked(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := core.AddKey(network.Test)
	if got := g.ask(t, tokenRequests[0], bearer(key)); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	core.Revoke(key)
	asynctest.Eventually(t, "the token is refused", func() bool { return g.ask(t, tokenRequests[0], bearer(key)).Status == 401 })
}

func TestClientToken_Scope(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	reads, writes, neither := apikey.New(network.Test), apikey.New(network.Test), apikey.New(network.Test)
	core.Put(reads, wire.VerifiedKey{Scopes: []string{"intents:read"}})
	core.Put(writes, wire.VerifiedKey{Scopes: []string{"intents:write"}})
	core.Put(neither, wire.VerifiedKey{Scopes: []string{"webhooks"}})
	for _, test := range []struct {
		key  apikey.Key
		want [3]int
	}{{reads, [3]int{200, 200, 403}}, {writes, [3]int{403, 403, 200}}, {neither, [3]int{403, 403, 403}}} {
		var got [3]int
		for n, what := range []string{tokenRequests[0], tokenRequests[2], tokenRequests[4]} {
			got[n] = g.ask(t, what, bearer(test.key)).Status
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(lacksScope("intents:write"), g.ask(t, tokenRequests[4], bearer(reads))); diff != "" {
		t.Error(diff)
	}
}

// All tokens of a key and intent share a bucket. The key keeps its own, and the account's counts both.
func TestClientToken_RateLimit(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: 2, PeriodSeconds: 3600}, AccountLimit: wire.KeyLimit{Requests: 4, PeriodSeconds: 3600}})
	another := "Authorization: Bearer " + clienttoken.NewMinter(coretest.Secret).Mint(clienttoken.Claims{
		Key: key.Hash(), TransferID: uuid.MustParse("0199c0de-0000-7000-8000-00000000abce"), Expires: time.Now().Add(time.Hour),
	}) + "\r\n"
	var got []string
	for _, step := range [][2]string{
		{tokenRequests[0], bearer(key)},
		{tokenRequests[2], bearer(key)},
		{tokenRequests[0], bearer(key)},
		{"GET /v2/tokens", apiKey(key)},
		{"GET /v2/transfers/0199c0de-0000-7000-8000-00000000abce", another},
		{"GET /v2/tokens", apiKey(key)},
	} {
		r := g.ask(t, step[0], step[1])
		got = append(got, fmt.Sprint(r.Status, " ", r.Header.Get("Ratelimit")))
	}
	want := []string{
		`200 "default";r=1;t=1800, "account";r=3;t=900`, `200 "default";r=0;t=3600, "account";r=2;t=1800`, `429 "default";r=0;t=3600, "account";r=2;t=1800`,
		`200 "default";r=1;t=1800, "account";r=1;t=2700`, `200 "default";r=1;t=1800, "account";r=0;t=3600`, `429 "default";r=1;t=1800, "account";r=0;t=3600`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	refused := g.ask(t, tokenRequests[0], bearer(key))
	const message = "Too many requests were made with client tokens of this transfer. Wait as long as Retry-After says, then try again."
	if !strings.Contains(refused.Body, message) {
		t.Errorf("the refusal says %s", refused.Body)
	}
}
