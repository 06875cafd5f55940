package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/screening"
	"intents.internal/pkg/network"
)

// batchOf is the body of a batch of requests.
func batchOf(requests ...string) string { return `{"transfers":[` + strings.Join(requests, ",") + `]}` }

func withKey(key string, header []string) []string {
	return append(slices.Clone(header), "Idempotency-Key", key)
}

// batch is a response to POST /v2/transfers/batch.
type batch struct {
	ID        string
	Count     int
	CreatedAt string
	Transfers []map[string]any
}

func (s *service) createBatch(t *testing.T, request string, header ...string) (b batch, replayed bool) {
	t.Helper()
	response := s.send(t, "POST", "/v2/transfers/batch", request, header...)
	raw := readAll(t, response)
	if err := json.Unmarshal([]byte(raw), &b); err != nil || response.StatusCode != 201 {
		t.Fatalf("%d %s %v", response.StatusCode, raw, err)
	}
	if location := response.Header.Get("Location"); location != "/v2/batches/"+b.ID {
		t.Errorf("Location: %s, the batch is %s", location, b.ID)
	}
	return b, response.Header.Get("Idempotent-Replayed") == "true"
}

func (b batch) ids() (ids []string) {
	for _, one := range b.Transfers {
		ids = append(ids, one["id"].(string)) //nolint:forcetypeassert // readAll holds it to its schema
	}
	return ids
}

// The intents of a batch that are signed by Permit2 have permits, in a repetition too. The token is asked once for each of their users.
func TestCreateBatch_Permits(t *testing.T) {
	t.Parallel()
	chain := walletChain()
	var asked atomic.Int64
	chain.SetFunction(usdc, rpctest.NewSelector("nonces(address)"), func(rpctest.Call) ([]byte, error) {
		asked.Add(1)
		return rpctest.Word(7), nil
	})
	s := start(t, func(c *settings) { c.intents.Chains = nodes(t, sepolia, rpctest.NewNode(chain)) })
	account, one, other := keyed(uuid.New(), "test"), newSigner(t), newSigner(t)
	request := batchOf(one.request(bridgeBody, "permit2"), other.request(swapBody, "permit2"), one.request(bridgeBody, "permit2"),
		one.request(bridgeBody, "erc3009"), bridgeBody)
	for _, repeated := range []bool{false, true} {
		b, replayed := s.createBatch(t, request, withKey("signed", account)...)
		var owners []any
		for _, transfer := range b.Transfers {
			signing, _ := transfer["signing"].(map[string]any)
			permit, _ := signing["permit"].(map[string]any)
			message, _ := permit["message"].(map[string]any)
			if message != nil && message["nonce"] != "7" {
				t.Errorf("nonce %v", message["nonce"])
			}
			owners = append(owners, message["owner"])
		}
		if diff := cmp.Diff([]any{one.address, other.address, one.address, nil, nil}, owners); diff != "" || replayed != repeated {
			t.Errorf("replayed %t, owners of permits (-want +got):\n%s", replayed, diff)
		}
		if n := asked.Swap(0); n != 2 {
			t.Errorf("the token was asked %d times", n)
		}
	}
}

// Each item is recorded as POST /v2/transfers would record it alone, in the order of the request.
func TestCreateBatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := keyed(owner, "test")
	named := body(aliceOnSepolia, sepoliaUSDC, "7", bobOnSepolia, "", "", `,"reference":"inv-1"`)
	request := batchOf(transferBody, named, transferBody, bridgeBody)
	header := withKey("payroll-1", account)

	made, replayed := s.createBatch(t, request, header...)
	if replayed || made.Count != 4 || len(made.Transfers) != 4 {
		t.Fatalf("replayed %v: %+v", replayed, made)
	}
	ids := made.ids()
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != 4 {
		t.Errorf("the ids do not ascend: %v", ids)
	}
	for n, alone := range []string{transferBody, named, transferBody, bridgeBody} {
		want := s.call(t, "POST", "/v2/transfers", alone, keyed(uuid.New(), "test")...).Body.(map[string]any)
		got := s.call(t, "GET", "/v2/transfers/"+ids[n], "", account...).Body.(map[string]any)
		for _, record := range []map[string]any{want, got} { // they follow from the id
			delete(record, "orderId")
			delete(record, "deadline")
			delete(record, "order")
			delete(record, "tx")
		}
		want["batchId"] = "<id>"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("item %d is not as it is alone (-alone +in the batch):\n%s", n, diff)
		}
		if made.Transfers[n]["batchId"] != made.ID || made.Transfers[n]["tx"] == nil {
			t.Errorf("item %d: %v", n, made.Transfers[n])
		}
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM events WHERE account_id = $1 AND to_status = 'created' AND sequence = 1`, owner.String()); n != 4 {
		t.Errorf("%d events", n)
	}

	short := s.example(t, "summaries", "POST", "/v2/transfers/batch", batchOf(transferBody, named), append(withKey("payroll-2", account), "Prefer", `wait=1, Return="minimal";x=1`)...)
	if short.Header["Preference-Applied"] != "return=minimal" {
		t.Errorf("%v", short.Header)
	}
	if _, whole := short.Body.(map[string]any)["transfers"].([]any)[0].(map[string]any)["tx"]; whole {
		t.Errorf("not minimal: %v", short.Body)
	}
	s.example(t, "a batch of two", "POST", "/v2/transfers/batch", batchOf(transferBody, named), append(withKey("payroll-3", account), "Prefer", "return=representation")...)
	listed := s.call(t, "GET", "/v2/transfers?batch="+made.ID, "", account...).Body.([]any)
	if len(listed) != 4 {
		t.Errorf("the list of the batch has %d", len(listed))
	}
	same(t, "another account's", want(t, 200, `[]`), withoutPage(s.call(t, "GET", "/v2/transfers?batch="+made.ID, "", keyed(uuid.New(), "test")...)))
	same(t, "filtered", want(t, 200, `[]`), withoutPage(s.call(t, "GET", "/v2/transfers?status=filled&batch="+made.ID, "", account...)))
	same(t, "the nil UUID", want(t, 200, `[]`), withoutPage(s.call(t, "GET", "/v2/transfers?batch="+uuid.Nil.String(), "", account...)))
	same(t, "no id", invalid(t, "batch", "must be the id of a batch: a UUID in lower case"), s.call(t, "GET", "/v2/transfers?batch=x", "", account...))
}

// withoutPage takes the headers of a list out of an answer.
func withoutPage(a answer) answer {
	a.Header = maps.Clone(a.Header)
	delete(a.Header, "Etag")
	a.Header["Cache-Control"] = "no-store"
	return a
}

func TestCreateBatch_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := keyed(uuid.New(), "test")
	header := withKey("key", account)
	tooMuch := body(aliceOnSepolia, sepoliaUSDC, "0", bobOnSepolia, "", "", "")
	failure := func(index int, code, message string) map[string]any {
		return map[string]any{"index": float64(index), "code": code, "message": message}
	}
	rejected := func(failures ...any) answer {
		return detailed(refused(t, 422, "BATCH_REJECTED", "Some of the transfers cannot be recorded, so none was; see details.failures."), "failures", failures)
	}
	const amount = "The source amount must be between 1 and 2^256-1 of the token's smallest unit."
	var issues []string
	for n := range 20 {
		issues = append(issues, fmt.Sprintf("/transfers/%d/source/amount", n), "must be a whole number of the token's smallest unit in decimal digits, without sign or leading zeros")
	}
	wrongChain := want(t, 403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","chainId":1,"keyEnv":"test","details":{"path":"/transfers/1/source/account"},
		"message":"Chain eip155:1 is a live chain and this is a test key; use a live key."}`)
	onMainnet := body(aliceOnMainnet, mainnetUSDC, "5", bobOnMainnet, "", "", "")
	for name, c := range map[string]struct {
		header []string
		body   string
		want   answer
	}{
		"too long": {header, strings.Repeat(" ", 64<<10+1), detailed(refused(t, 413, "PAYLOAD_TOO_LARGE", "The body must not be longer than 65536 bytes."), "maxBytes", 65536.0)},
		"no JSON":  {append(slices.Clone(header), "Content-Type", "text/plain"), batchOf(transferBody), refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")},
		"no items": {header, batchOf(), invalid(t, "/transfers", "must have 1 to 100 items")},
		"of a quote": {header, batchOf(transferBody, `{"quoteId":"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"}`), invalid(t,
			"/transfers/1/quoteId", "must be left out: an intent of a quote is made alone, with POST /v2/transfers")},
		"a name twice":    {header, batchOf(transferBody, `{"source":{},"source":{}}`), invalid(t, "/transfers/1/source", "is given twice")},
		"100 wrong items": {header, batchOf(slices.Repeat([]string{body(aliceOnSepolia, sepoliaUSDC, "-1", bobOnSepolia, "", "", "")}, 100)...), invalid(t, issues...)},
		"no key": {account, batchOf(transferBody), refused(t, 400, "IDEMPOTENCY_KEY_REQUIRED",
			"A batch needs an Idempotency-Key header, so that a repeated request makes no payment twice.")},
		"another environment": {header, batchOf(tooMuch, onMainnet), wrongChain},
		"101 items": {header, batchOf(slices.Repeat([]string{tooMuch}, 101)...), detailed(refused(t, 422, "BATCH_TOO_LARGE",
			"A batch must not have more than 100 transfers; split it."), "max", 100.0)},
		"one among others": {header, batchOf(transferBody, tooMuch, transferBody), rejected(failure(1, "INVALID_AMOUNT", amount))},
		"all failures told": {header, batchOf(tooMuch, transferBody, body(aliceOnSepolia, sepoliaUSDC, "5", aliceOnSepolia, "", "", ""), tooMuch), rejected(
			failure(0, "INVALID_AMOUNT", amount), failure(2, "SELF_TRANSFER", "Source and destination are the same account and token."), failure(3, "INVALID_AMOUNT", amount))},
	} {
		same(t, name, c.want, s.call(t, "POST", "/v2/transfers/batch", c.body, c.header...))
	}
	same(t, "query", invalid(t, "a", "is not a known parameter"), s.call(t, "POST", "/v2/transfers/batch?a=1", batchOf(transferBody), header...))
	if n := pgtest.LookUp[int](t, s.store, `SELECT (SELECT count(*) FROM transfers) + (SELECT count(*) FROM batches)`); n != 0 {
		t.Errorf("%d rows of refused batches", n)
	}
}

// A key makes one batch, whatever the spelling of its repeats, and also once an item would be refused.
func TestCreateBatch_Repeated(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := keyed(owner, "test")
	header := withKey("payroll", account)
	first := body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", `,"reference":"a"`)
	second := body(aliceOnSepolia, sepoliaUSDC, "6", bobOnSepolia, "", "", `,"reference":"b"`)
	made, _ := s.createBatch(t, batchOf(first, second), header...)

	spelled := batchOf(strings.Replace(first, alice, strings.ToLower(alice), 1), body(aliceOnSepolia, sepoliaUSDC, "6", bobOnSepolia, sepoliaUSDC, "6", `,"reference":"b"`))
	s.create(t, transferBody, header...) // keys of single intents are another name space
	s.call(t, "POST", "/v2/transfers/"+made.ids()[0]+"/cancel", "", account...)
	for name, request := range map[string]string{"the same": batchOf(first, second), "spelled otherwise": spelled} {
		again, replayed := s.createBatch(t, request, header...)
		made.Transfers[0]["tx"] = nil // it was cancelled, and is shown as it was made
		if diff := cmp.Diff(made, again); diff != "" || !replayed {
			t.Errorf("%s, replayed %v (-first +again):\n%s", name, replayed, diff)
		}
	}
	reused := refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	for name, request := range map[string]string{
		"another order": batchOf(second, first), "one fewer": batchOf(first), "one more": batchOf(first, second, second),
	} {
		same(t, name, reused, s.call(t, "POST", "/v2/transfers/batch", request, header...))
	}
	if _, replayed := s.createBatch(t, batchOf(first, second), withKey("payroll", keyed(uuid.New(), "test"))...); replayed {
		t.Error("another account's key")
	}

	pgtest.Exec(t, s.store, `DELETE FROM tokens WHERE chain_id = 'eip155:11155111'`)
	pgtest.Must(t, s.live.Refresh(t.Context()))
	again, replayed := s.createBatch(t, batchOf(first, second), header...)
	if again.ID != made.ID || !replayed {
		t.Errorf("after its token has left: %v %+v", replayed, again)
	}
	if other := s.call(t, "POST", "/v2/transfers/batch", batchOf(first), header...); other.Body.(map[string]any)["code"] != "BATCH_REJECTED" {
		t.Errorf("other items that would be refused: %+v", other)
	}
}

// Requests with one key that come together, at two cores, make one batch.
func TestCreateBatch_Twins(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	cores := []*service{startOn(t, store), startOn(t, store)}
	header := withKey("payroll", keyed(uuid.New(), "test"))
	ids := make([]string, 12)
	var group sync.WaitGroup
	for n := range ids {
		group.Go(func() {
			made, _ := cores[n%2].createBatch(t, batchOf(transferBody, bridgeBody, swapBody), header...)
			ids[n] = made.ID + strings.Join(made.ids(), " ")
		})
	}
	group.Wait()
	if unique := slices.Compact(slices.Clone(ids)); len(unique) != 1 {
		t.Errorf("one key has made %v", unique)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`); n != 3 {
		t.Errorf("%d intents", n)
	}
}

// Every listed address of a batch is named, and nothing is recorded; a repeat of a batch that was made before is answered, without what is withheld.
func TestCreateBatch_Screened(t *testing.T) {
	t.Parallel()
	s := startScreened(t)
	account := keyed(uuid.New(), string(network.Test))
	header := withKey("payroll", account)
	toTest := body(aliceOnSepolia, sepoliaUSDC, "5", "eip155:11155111:"+screening.TestAddress, "", "", "")
	fromMallory := body(malloryOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", "")
	wrong := body(aliceOnSepolia, sepoliaUSDC, "0", bobOnSepolia, "", "", "")
	same(t, "two of four", notAllowed(t, "/transfers/1/destination/account", "/transfers/3/source/account"),
		s.call(t, "POST", "/v2/transfers/batch", batchOf(transferBody, toTest, wrong, fromMallory), header...))

	made, _ := s.createBatch(t, batchOf(transferBody, transferBody), header...)
	s.list(t, bob)
	again, replayed := s.createBatch(t, batchOf(transferBody, transferBody), header...)
	if !replayed || again.ID != made.ID || again.Transfers[0]["tx"] != nil || again.Transfers[1]["screened"] != true {
		t.Errorf("replayed %v: %+v", replayed, again)
	}
	calls := s.call(t, "GET", "/v2/batches/"+made.ID+"/calls", "", account...)
	if diff := cmp.Diff(want(t, 200, `{"requests":[],"excluded":[{"id":"<id>","reason":"STATUS"},{"id":"<id>","reason":"STATUS"}]}`), calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	s.delist(t, bob)
	if back, _ := s.createBatch(t, batchOf(transferBody, transferBody), header...); back.Transfers[0]["tx"] == nil {
		t.Error("the transaction does not come back")
	}
	s.unlogged(t)
}

// A batch waits for a place of its own, and a single intent for no batch.
func TestCreateBatch_Places(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	s := startOn(t, store)
	pgtest.Lock(t, store, `LOCK TABLE batches IN ACCESS EXCLUSIVE MODE`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got := s.call(t, "POST", "/v2/transfers/batch", batchOf(transferBody), withKey("key", keyed(uuid.New(), "test"))...)
			if got.Status != 503 {
				t.Errorf("a batch behind a lock: %+v", got)
			}
		})
	}
	for range 20 {
		if status, _, record := s.create(t, transferBody, keyed(uuid.New(), "test")...); status != 201 {
			t.Errorf("a single intent: %d %s", status, record)
		}
	}
	group.Wait()
}
