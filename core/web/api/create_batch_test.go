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
	"intents.internal/core/web/webtest"
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
	response := s.Send(t, "POST", "/v2/transfers/batch", request, header...)
	raw := webtest.ReadAll(t, response)
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
		ids = append(ids, one["id"].(string)) //nolint:forcetypeassert // ReadAll holds it to its schema
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
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(chain)) })
	account, one, other := webtest.Keyed(uuid.New(), "test"), newSigner(t), newSigner(t)
	request := batchOf(one.request(webtest.BridgeBody, "permit2"), other.request(webtest.SwapBody, "permit2"), one.request(webtest.BridgeBody, "permit2"),
		one.request(webtest.BridgeBody, "erc3009"), webtest.BridgeBody)
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
	account := webtest.Keyed(owner, "test")
	named := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "7", webtest.BobOnSepolia, "", "", `,"reference":"inv-1"`)
	request := batchOf(webtest.TransferBody, named, webtest.TransferBody, webtest.BridgeBody)
	header := withKey("payroll-1", account)

	made, replayed := s.createBatch(t, request, header...)
	if replayed || made.Count != 4 || len(made.Transfers) != 4 {
		t.Fatalf("replayed %v: %+v", replayed, made)
	}
	ids := made.ids()
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != 4 {
		t.Errorf("the ids do not ascend: %v", ids)
	}
	for n, alone := range []string{webtest.TransferBody, named, webtest.TransferBody, webtest.BridgeBody} {
		want := s.Call(t, "POST", "/v2/transfers", alone, webtest.Keyed(uuid.New(), "test")...).Body.(map[string]any)
		got := s.Call(t, "GET", "/v2/transfers/"+ids[n], "", account...).Body.(map[string]any)
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
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM events WHERE account_id = $1 AND to_status = 'created' AND sequence = 1`, owner.String()); n != 4 {
		t.Errorf("%d events", n)
	}

	short := s.Example(t, "summaries", "POST", "/v2/transfers/batch", batchOf(webtest.TransferBody, named), append(withKey("payroll-2", account), "Prefer", `wait=1, Return="minimal";x=1`)...)
	if short.Header["Preference-Applied"] != "return=minimal" {
		t.Errorf("%v", short.Header)
	}
	if _, whole := short.Body.(map[string]any)["transfers"].([]any)[0].(map[string]any)["tx"]; whole {
		t.Errorf("not minimal: %v", short.Body)
	}
	s.Example(t, "a batch of two", "POST", "/v2/transfers/batch", batchOf(webtest.TransferBody, named), append(withKey("payroll-3", account), "Prefer", "return=representation")...)
	listed := s.Call(t, "GET", "/v2/transfers?batch="+made.ID, "", account...).Body.([]any)
	if len(listed) != 4 {
		t.Errorf("the list of the batch has %d", len(listed))
	}
	webtest.Same(t, "another account's", webtest.Want(t, 200, `[]`), withoutPage(s.Call(t, "GET", "/v2/transfers?batch="+made.ID, "", webtest.Keyed(uuid.New(), "test")...)))
	webtest.Same(t, "filtered", webtest.Want(t, 200, `[]`), withoutPage(s.Call(t, "GET", "/v2/transfers?status=filled&batch="+made.ID, "", account...)))
	webtest.Same(t, "the nil UUID", webtest.Want(t, 200, `[]`), withoutPage(s.Call(t, "GET", "/v2/transfers?batch="+uuid.Nil.String(), "", account...)))
	webtest.Same(t, "no id", webtest.Invalid(t, "batch", "must be the id of a batch: a UUID in lower case"), s.Call(t, "GET", "/v2/transfers?batch=x", "", account...))
}

// withoutPage takes the headers of a list out of an answer.
func withoutPage(a webtest.Answer) webtest.Answer {
	a.Header = maps.Clone(a.Header)
	delete(a.Header, "Etag")
	a.Header["Cache-Control"] = "no-store"
	return a
}

func TestCreateBatch_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	header := withKey("key", account)
	tooMuch := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "0", webtest.BobOnSepolia, "", "", "")
	failure := func(index int, code, message string) map[string]any {
		return map[string]any{"index": float64(index), "code": code, "message": message}
	}
	rejected := func(failures ...any) webtest.Answer {
		return webtest.Detailed(webtest.Refused(t, 422, "BATCH_REJECTED", "Some of the transfers cannot be recorded, so none was; see details.failures."), "failures", failures)
	}
	const amount = "The source amount must be between 1 and 2^256-1 of the token's smallest unit."
	var issues []string
	for n := range 20 {
		issues = append(issues, fmt.Sprintf("/transfers/%d/source/amount", n), "must be a whole number of the token's smallest unit in decimal digits, without sign or leading zeros")
	}
	wrongChain := webtest.Want(t, 403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","chainId":1,"keyEnv":"test","details":{"path":"/transfers/1/source/account"},
		"message":"Chain eip155:1 is a live chain and this is a test key; use a live key."}`)
	onMainnet := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", webtest.BobOnMainnet, "", "", "")
	for name, c := range map[string]struct {
		header []string
		body   string
		want   webtest.Answer
	}{
		"too long": {header, strings.Repeat(" ", 64<<10+1), webtest.Detailed(webtest.Refused(t, 413, "PAYLOAD_TOO_LARGE", "The body must not be longer than 65536 bytes."), "maxBytes", 65536.0)},
		"no JSON":  {append(slices.Clone(header), "Content-Type", "text/plain"), batchOf(webtest.TransferBody), webtest.Refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")},
		"no items": {header, batchOf(), webtest.Invalid(t, "/transfers", "must have 1 to 100 items")},
		"of a quote": {header, batchOf(webtest.TransferBody, `{"quoteId":"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"}`), webtest.Invalid(t,
			"/transfers/1/quoteId", "must be left out: an intent of a quote is made alone, with POST /v2/transfers")},
		"a name twice":    {header, batchOf(webtest.TransferBody, `{"source":{},"source":{}}`), webtest.Invalid(t, "/transfers/1/source", "is given twice")},
		"100 wrong items": {header, batchOf(slices.Repeat([]string{webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "-1", webtest.BobOnSepolia, "", "", "")}, 100)...), webtest.Invalid(t, issues...)},
		"no key": {account, batchOf(webtest.TransferBody), webtest.Refused(t, 400, "IDEMPOTENCY_KEY_REQUIRED",
			"A batch needs an Idempotency-Key header, so that a repeated request makes no payment twice.")},
		"another environment": {header, batchOf(tooMuch, onMainnet), wrongChain},
		"101 items": {header, batchOf(slices.Repeat([]string{tooMuch}, 101)...), webtest.Detailed(webtest.Refused(t, 422, "BATCH_TOO_LARGE",
			"A batch must not have more than 100 transfers; split it."), "max", 100.0)},
		"one among others": {header, batchOf(webtest.TransferBody, tooMuch, webtest.TransferBody), rejected(failure(1, "INVALID_AMOUNT", amount))},
		"all failures told": {header, batchOf(tooMuch, webtest.TransferBody, webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.AliceOnSepolia, "", "", ""), tooMuch), rejected(
			failure(0, "INVALID_AMOUNT", amount), failure(2, "SELF_TRANSFER", "Source and destination are the same account and token."), failure(3, "INVALID_AMOUNT", amount))},
	} {
		webtest.Same(t, name, c.want, s.Call(t, "POST", "/v2/transfers/batch", c.body, c.header...))
	}
	webtest.Same(t, "query", webtest.Invalid(t, "a", "is not a known parameter"), s.Call(t, "POST", "/v2/transfers/batch?a=1", batchOf(webtest.TransferBody), header...))
	if n := pgtest.LookUp[int](t, s.Store, `SELECT (SELECT count(*) FROM transfers) + (SELECT count(*) FROM batches)`); n != 0 {
		t.Errorf("%d rows of refused batches", n)
	}
}

// A key makes one batch, whatever the spelling of its repeats, and also once an item would be refused.
func TestCreateBatch_Repeated(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	header := withKey("payroll", account)
	first := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"reference":"a"`)
	second := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "6", webtest.BobOnSepolia, "", "", `,"reference":"b"`)
	made, _ := s.createBatch(t, batchOf(first, second), header...)

	spelled := batchOf(strings.Replace(first, webtest.Alice, strings.ToLower(webtest.Alice), 1), webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "6", webtest.BobOnSepolia, webtest.SepoliaUSDC, "6", `,"reference":"b"`))
	s.CreateTransfer(t, webtest.TransferBody, header...) // keys of single intents are another name space
	s.Call(t, "POST", "/v2/transfers/"+made.ids()[0]+"/cancel", "", account...)
	for name, request := range map[string]string{"the same": batchOf(first, second), "spelled otherwise": spelled} {
		again, replayed := s.createBatch(t, request, header...)
		made.Transfers[0]["tx"] = nil // it was cancelled, and is shown as it was made
		if diff := cmp.Diff(made, again); diff != "" || !replayed {
			t.Errorf("%s, replayed %v (-first +again):\n%s", name, replayed, diff)
		}
	}
	reused := webtest.Refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	for name, request := range map[string]string{
		"another order": batchOf(second, first), "one fewer": batchOf(first), "one more": batchOf(first, second, second),
	} {
		webtest.Same(t, name, reused, s.Call(t, "POST", "/v2/transfers/batch", request, header...))
	}
	if _, replayed := s.createBatch(t, batchOf(first, second), withKey("payroll", webtest.Keyed(uuid.New(), "test"))...); replayed {
		t.Error("another account's key")
	}

	pgtest.Exec(t, s.Store, `DELETE FROM tokens WHERE chain_id = 'eip155:11155111'`)
	pgtest.Must(t, s.Live.Refresh(t.Context()))
	again, replayed := s.createBatch(t, batchOf(first, second), header...)
	if again.ID != made.ID || !replayed {
		t.Errorf("after its token has left: %v %+v", replayed, again)
	}
	if other := s.Call(t, "POST", "/v2/transfers/batch", batchOf(first), header...); other.Body.(map[string]any)["code"] != "BATCH_REJECTED" {
		t.Errorf("other items that would be refused: %+v", other)
	}
}

// Requests with one key that come together, at two cores, make one batch.
func TestCreateBatch_Twins(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	cores := []*service{startOn(t, store), startOn(t, store)}
	header := withKey("payroll", webtest.Keyed(uuid.New(), "test"))
	ids := make([]string, 12)
	var group sync.WaitGroup
	for n := range ids {
		group.Go(func() {
			made, _ := cores[n%2].createBatch(t, batchOf(webtest.TransferBody, webtest.BridgeBody, webtest.SwapBody), header...)
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
	account := webtest.Keyed(uuid.New(), string(network.Test))
	header := withKey("payroll", account)
	toTest := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", "eip155:11155111:"+screening.TestAddress, "", "", "")
	fromMallory := webtest.Body(malloryOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", "")
	wrong := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "0", webtest.BobOnSepolia, "", "", "")
	webtest.Same(t, "two of four", webtest.NotAllowed(t, "/transfers/1/destination/account", "/transfers/3/source/account"),
		s.Call(t, "POST", "/v2/transfers/batch", batchOf(webtest.TransferBody, toTest, wrong, fromMallory), header...))

	made, _ := s.createBatch(t, batchOf(webtest.TransferBody, webtest.TransferBody), header...)
	s.List(t, webtest.Bob)
	again, replayed := s.createBatch(t, batchOf(webtest.TransferBody, webtest.TransferBody), header...)
	if !replayed || again.ID != made.ID || again.Transfers[0]["tx"] != nil || again.Transfers[1]["screened"] != true {
		t.Errorf("replayed %v: %+v", replayed, again)
	}
	calls := s.Call(t, "GET", "/v2/batches/"+made.ID+"/calls", "", account...)
	if diff := cmp.Diff(webtest.Want(t, 200, `{"requests":[],"excluded":[{"id":"<id>","reason":"STATUS"},{"id":"<id>","reason":"STATUS"}]}`), calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	s.Delist(t, webtest.Bob)
	if back, _ := s.createBatch(t, batchOf(webtest.TransferBody, webtest.TransferBody), header...); back.Transfers[0]["tx"] == nil {
		t.Error("the transaction does not come back")
	}
	s.Unlogged(t, s.Log)
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
			got := s.Call(t, "POST", "/v2/transfers/batch", batchOf(webtest.TransferBody), withKey("key", webtest.Keyed(uuid.New(), "test"))...)
			if got.Status != 503 {
				t.Errorf("a batch behind a lock: %+v", got)
			}
		})
	}
	for range 20 {
		if status, _, record := s.CreateTransfer(t, webtest.TransferBody, webtest.Keyed(uuid.New(), "test")...); status != 201 {
			t.Errorf("a single intent: %d %s", status, record)
		}
	}
	group.Wait()
}
