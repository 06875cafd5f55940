package edge_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// batchOf is a batch of so many equal intents on a test chain.
func batchOf(n int) string {
	return transferBatch(slices.Repeat([]string{transfer(testnet, testnet)}, n)...)
}

const (
	batchHeaders = jsonType + "Idempotency-Key: payroll-7\r\n"

	batchTooLong = `{"code":"PAYLOAD_TOO_LARGE","message":"The body must not be longer than 65536 bytes.","details":{"maxBytes":65536}}`
	keyRequired  = `{"code":"IDEMPOTENCY_KEY_REQUIRED","message":"A batch needs an Idempotency-Key header, so that a repeated request makes no payment twice."}`
)

// longBodies lets bodies pass that are longer than a batch may be.
func longBodies(s *settings) { s.MaxBodyBytes = 2 * wire.MaxTransferBatchBytes }

// batchIssues is the 400 that lists issues, each a path and a message, of a batch that took one token.
func batchIssues(issues ...[2]string) response {
	var all []string
	for _, issue := range issues {
		all = append(all, fmt.Sprintf(`{"path":%q,"message":%q}`, issue[0], issue[1]))
	}
	return refusal(400, `{"code":"INVALID_REQUEST","message":"The request is not valid; see details.issues.","details":{"issues":[`+strings.Join(all, ",")+`]}}`, fresh...)
}

// wrongChain is the 403 of a test key for an intent on mainnet.
func wrongChain(path string, headers ...string) response {
	return refusal(403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","message":"Chain eip155:1 is a live chain and this is a test key; use a live key.",`+
		`"chainId":1,"keyEnv":"test","details":{"path":"`+path+`"}}`, headers...)
}

func tooManyItems(most int, headers ...string) response {
	return refusal(422, fmt.Sprintf(`{"code":"BATCH_TOO_LARGE","message":"A batch must not have more than %d transfers; split it.","details":{"max":%d}}`, most, most), headers...)
}

// Every status that the gateway itself answers a batch with. What breaks two rules breaks the first in the order 413, 415, 400, 403,
// BATCH_TOO_LARGE. Only the 403 takes a token of the account for each intent.
func TestTransferBatch_Refusals(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, longBodies)
	here, there := transfer(testnet, testnet), transfer(mainnet, mainnet)
	for name, test := range map[string]struct {
		headers, body string
		want          response
	}{
		"64 KiB + 1, no JSON": {jsonType, strings.Repeat("x", wire.MaxTransferBatchBytes+1), refusal(413, batchTooLong, fresh...)},
		"64 KiB + 1, no type": {"", strings.Repeat(" ", wire.MaxTransferBatchBytes+1), refusal(413, batchTooLong, fresh...)},
		"64 KiB of nothing":   {batchHeaders, strings.Repeat(" ", wire.MaxTransferBatchBytes), batchIssues([2]string{"", "is not one valid JSON object: it ends too early"})},
		"no type, no JSON":    {"", "{", refusal(415, `{"code":"UNSUPPORTED_MEDIA_TYPE","message":"The body must be application/json in UTF-8."}`, fresh...)},
		"no intents":          {jsonType, `{}`, batchIssues([2]string{"/transfers", "is required"})},
		"an empty list":       {batchHeaders, transferBatch(), batchIssues([2]string{"/transfers", "must have 1 to 100 items"})},
		"issues of two intents, other environment": {
			batchHeaders, transferBatch(there, `{"source":{}}`, `{"quoteId":"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"}`),
			batchIssues([2]string{"/transfers/1/source/account", "is required"}, [2]string{"/transfers/1/source/token", "is required"},
				[2]string{"/transfers/1/source/amount", "is required"}, [2]string{"/transfers/1/destination", "is required"},
				[2]string{"/transfers/2/quoteId", "must be left out: an intent of a quote is made alone, with POST /v2/transfers"}),
		},
		"a name twice": {
			batchHeaders, transferBatch(`{}`, strings.Replace(here, `"amount":"1"`, `"amount":"1","amount":"2"`, 1)),
			batchIssues([2]string{"/transfers/1/source/amount", "is given twice"}),
		},
		"no Idempotency-Key, other environment": {jsonType, transferBatch(there), refusal(400, keyRequired, fresh...)},
		"no Idempotency-Key, 101 intents":       {jsonType, batchOf(101), refusal(400, keyRequired, fresh...)},
		"Idempotency-Key with a tab": {
			jsonType + "Idempotency-Key: a\tb\r\n", transferBatch(there),
			batchIssues([2]string{"Idempotency-Key", "must be given once, with 1 to 255 printable ASCII characters"}),
		},
		"other environment of the third": {
			batchHeaders, transferBatch(here, here, transfer(testnet, mainnet), there),
			wrongChain("/transfers/2/destination/account", "Ratelimit", `"default";r=49;t=2, "account";r=996;t=1`, "Ratelimit-Policy", defaultPolicy),
		},
		"101 intents":                          {batchHeaders, batchOf(101), tooManyItems(100, fresh...)},
		"101 intents, the last of another one": {batchHeaders, strings.TrimSuffix(batchOf(100), "]}") + "," + there + "]}", wrongChain("/transfers/100/source/account", fresh...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := g.send(t, request("POST", "/v2/transfers/batch", apiKey(core.AddKey(network.Test))+test.headers, test.body))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Cleanup(func() {
		if heard := core.Requests(); len(heard) > 0 {
			t.Errorf("core received %+v", heard)
		}
	})
}

// A batch of more intents than the burst of its account is never told to wait: its bucket never has as many tokens.
func TestTransferBatch_OverBurst(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: 50, PeriodSeconds: 86400}, AccountLimit: wire.KeyLimit{Requests: 7, PeriodSeconds: 86400}})
	const policy = `"default";q=50;w=86400, "account";q=7;w=86400`
	want := tooManyItems(7, "Ratelimit", `"default";r=49;t=1728, "account";r=6;t=12343`, "Ratelimit-Policy", policy)
	if diff := cmp.Diff(want, g.send(t, request("POST", "/v2/transfers/batch", apiKey(key)+batchHeaders, batchOf(8)))); diff != "" {
		t.Error(diff)
	}
}

func TestTransferBatch_LimiterUnavailable(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, func(s *settings) { s.RedisURL, s.LimitFallback = "redis://127.0.0.1:1/0", limit.Closed })
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"Rate limits cannot be checked now. Try again shortly."}`, "Retry-After", "1")
	for _, body := range []string{batchOf(2), "{"} {
		if diff := cmp.Diff(want, g.send(t, request("POST", "/v2/transfers/batch", apiKey(core.AddKey(network.Test))+batchHeaders, body))); diff != "" {
			t.Error(diff)
		}
	}
}

// Core gets a batch as it was sent, with Prefer and the Idempotency-Key, and its answer passes with its Location and Preference-Applied.
// What is core's to judge reaches it: unknown chains, and a query whatever the chains.
func TestTransferBatch_Forwarded(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/v2/batches/1")
		w.Header().Set("Preference-Applied", "return=minimal")
		w.Header().Set("Idempotent-Replayed", "true")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "{}")
	})
	g := start(t, core)
	for _, r := range []struct{ target, body, left string }{
		{"/v2/transfers/batch", batchOf(1), `"default";r=49;t=2, "account";r=999;t=1`},
		{"/v2/transfers/batch", batchOf(100), `"default";r=49;t=2, "account";r=900;t=6`},
		{"/v2/transfers/batch", transferBatch(transfer("eip155:4242", "eip155:4243"), transfer(testnet, testnet)), `"default";r=49;t=2, "account";r=998;t=1`},
		{"/v2/transfers/batch?x=1", transferBatch(transfer(mainnet, mainnet), transfer(testnet, testnet)), `"default";r=49;t=2, "account";r=998;t=1`},
	} {
		want := unkept(response{Status: 201, Body: "{}", Header: http.Header{
			"Content-Type": {"application/json"}, "Content-Length": {"2"}, "Location": {"/v2/batches/1"}, "Preference-Applied": {"return=minimal"},
			"Idempotent-Replayed": {"true"}, "Ratelimit": {r.left}, "Ratelimit-Policy": {defaultPolicy},
		}})
		got := g.send(t, request("POST", r.target, apiKey(core.AddKey(network.Test))+batchHeaders+"Prefer: return=minimal\r\n", r.body))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", r.target, diff)
		}
		heard := core.Requests()[len(core.Requests())-1]
		if heard.Target != r.target || heard.Body != r.body || heard.Header.Get("Idempotency-Key") != "payroll-7" || heard.Header.Get("Prefer") != "return=minimal" {
			t.Errorf("%s: core heard %+v", r.target, heard)
		}
	}
}

// The tokens that a batch takes of a key of 5 a day and of its account of 20 a day, by its outcome, as the next request sees them.
func TestTransferBatch_Buckets(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.Header.Get("Prefer")) // what the case wants core to answer
		if status > 0 {
			w.WriteHeader(status)
		}
	})
	g := start(t, core, longBodies)
	const path = "/v2/transfers/batch"
	for name, test := range map[string]struct {
		target, headers, body string
		status                int
		key, account          int // what is left
	}{
		"413":                 {path, "", strings.Repeat(" ", wire.MaxTransferBatchBytes+1), 413, 4, 19},
		"415":                 {path, "", batchOf(3), 415, 4, 19},
		"400":                 {path, batchHeaders, transferBatch(transfer(testnet, testnet), "{}"), 400, 4, 19},
		"no Idempotency-Key":  {path, jsonType, batchOf(3), 400, 4, 19},
		"over 100":            {path, batchHeaders, batchOf(101), 422, 4, 19},
		"over the burst":      {path, batchHeaders, batchOf(21), 422, 4, 19},
		"403":                 {path, batchHeaders, transferBatch(transfer(testnet, testnet), transfer(mainnet, mainnet)), 403, 4, 18},
		"201":                 {path, batchHeaders + "Prefer: 201\r\n", batchOf(3), 201, 4, 17},
		"201 of the burst":    {path, batchHeaders + "Prefer: 201\r\n", batchOf(20), 201, 4, 0},
		"422 of core":         {path, batchHeaders + "Prefer: 422\r\n", batchOf(3), 422, 4, 17},
		"503 of core":         {path, batchHeaders + "Prefer: 503\r\n", batchOf(3), 503, 4, 17},
		"400 of core: query":  {path + "?x=1", batchHeaders + "Prefer: 400\r\n", batchOf(3), 400, 4, 17},
		"a transaction of it": {"/v2/batches/1/transaction", batchHeaders, `{"hash":"0x1"}`, 200, 4, 19},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := putBatchKey(core, uuid.NewString())
			got := g.send(t, request("POST", test.target, apiKey(key)+test.headers, test.body))
			if key, account := leftOf(t, got); got.Status != test.status || key != test.key || account != test.account {
				t.Errorf("answer: %+v, want %d with %d and %d left", got, test.status, test.key, test.account)
			}
			next := g.send(t, request("GET", "/v2/tokens", apiKey(key), ""))
			if key, account := leftOf(t, next); key != test.key-min(1, test.account) || account != max(0, test.account-1) {
				t.Errorf("the next request has %d and %d left, want one less than %d and %d", key, account, test.key, test.account)
			}
		})
	}
}

// putBatchKey makes a test key of 5 requests a day known, whose account has 20.
func putBatchKey(core *coretest.Core, account string) apikey.Key {
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{
		AccountID: account, LimitBucket: uuid.NewString(),
		Limit: wire.KeyLimit{Requests: 5, PeriodSeconds: 86400}, AccountLimit: wire.KeyLimit{Requests: 20, PeriodSeconds: 86400},
	})
	return key
}

var quotas = regexp.MustCompile(`^"default";r=(\d+);t=\d+, "account";r=(\d+);t=\d+$`)

// leftOf is what the RateLimit field says is left in the buckets of the key and of the account.
func leftOf(t *testing.T, r response) (key, account int) {
	t.Helper()
	match := quotas.FindStringSubmatch(r.Header.Get("Ratelimit"))
	if match == nil {
		t.Fatalf("RateLimit: %+v", r)
	}
	key, _ = strconv.Atoi(match[1])
	account, _ = strconv.Atoi(match[2])
	return key, account
}

// A batch that its key or its account cannot pay takes nothing and waits until all its tokens are there, whatever else is wrong with it.
// Where that not even one token is left is known already, the batch is not read, and the wait is that of one token.
func TestTransferBatch_Limited(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	const tokenOfKey, tokenOfAccount = 24 * time.Hour / 5, 24 * time.Hour / 20
	account := uuid.NewString()
	payer, key := putBatchKey(core, account), putBatchKey(core, account)
	post := func(key apikey.Key, headers, body string) response {
		return g.send(t, request("POST", "/v2/transfers/batch", apiKey(key)+headers, body))
	}
	limited := func(what string, got response, message string, wait time.Duration, key, account int) {
		t.Helper()
		body := regexp.MustCompile(`^\{"code":"RATE_LIMITED","message":"` + message + ` Wait as long as Retry-After says, then try again.","details":\{"tryAgainIn":(\d+)\}` + anyRequestID + `\}$`)
		match := body.FindStringSubmatch(got.Body)
		if match == nil || got.Status != http.StatusTooManyRequests {
			t.Fatalf("%s: %+v", what, got)
		}
		milliseconds, _ := strconv.Atoi(match[1])
		if told := time.Duration(milliseconds) * time.Millisecond; told > wait || told < wait-5*time.Minute {
			t.Errorf("%s: wait %s, want %s", what, told, wait)
		}
		if seconds, _ := strconv.Atoi(got.Header.Get("Retry-After")); seconds != (milliseconds+999)/1000 {
			t.Errorf("%s: Retry-After %d for %d ms", what, seconds, milliseconds)
		}
		if k, a := leftOf(t, got); k != key || a != account {
			t.Errorf("%s: %d and %d left, want %d and %d", what, k, a, key, account)
		}
	}
	const byKey, byAccount = "Too many requests were made with this key.", "Too many requests were made with all keys of this account in this environment together."
	if got := post(payer, batchHeaders, batchOf(15)); got.Status != 200 {
		t.Fatalf("the first batch: %+v", got)
	}
	limited("two too many", post(key, batchHeaders, batchOf(7)), byAccount, 2*tokenOfAccount, 5, 5)
	limited("again", post(key, batchHeaders, batchOf(20)), byAccount, 15*tokenOfAccount, 5, 5)
	if got := post(key, batchHeaders, batchOf(4)); got.Status != 200 {
		t.Errorf("fewer after a refusal: %+v", got)
	}
	if got := post(key, batchHeaders, "{"); got.Status != 400 { // which takes the last
		t.Errorf("a malformed one: %+v", got)
	}
	limited("none left", post(key, batchHeaders, batchOf(3)), byAccount, tokenOfAccount, 3, 0)
	limited("malformed, none left", post(key, batchHeaders, "{"), byAccount, tokenOfAccount, 3, 0)
	limited("no type, none left", post(payer, "", ""), byAccount, tokenOfAccount, 4, 0)
	spent := putBatchKey(core, uuid.NewString())
	for range 5 {
		post(spent, "", "")
	}
	limited("a spent key, a malformed body", post(spent, "", "{"), byKey, tokenOfKey, 0, 15)
	limited("a spent key", post(spent, batchHeaders, batchOf(20)), byKey, tokenOfKey, 0, 15)
	if heard := core.Requests(); len(heard) != 2 {
		t.Errorf("core received %d requests, want two", len(heard))
	}
}

// However short a batch is, it is sent to core alone.
func TestTransferBatch_NeverGrouped(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	core := coretest.Start(t, func(http.ResponseWriter, *http.Request) { <-release })
	g := start(t, core)
	asynctest.Eventually(t, "core is known to serve batches", g.Upstream.Cores().All()[0].Batches)
	const clients = 12
	var all sync.WaitGroup
	for range clients {
		raw := request("POST", "/v2/transfers/batch", apiKey(core.AddKey(network.Test))+batchHeaders, batchOf(1))
		all.Go(func() { g.send(t, raw) })
	}
	defer all.Wait()
	defer close(release)
	asynctest.Eventually(t, "core has all of them", func() bool { return len(core.Requests()) == clients })
	if sent := core.Batches.Load(); sent != 0 {
		t.Errorf("%d groups were sent", sent)
	}
}
