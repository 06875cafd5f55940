package api_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/screening"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
)

// screened is a service with a list.
type screened struct {
	*service
	*webtest.Screened
}

func startScreened(t *testing.T, change ...func(*webtest.Settings)) *screened {
	t.Helper()
	list := webtest.NewScreened(t)
	return &screened{startOn(t, list.Store, append(change, list.Settings)...), list}
}

const malloryOnSepolia = "eip155:11155111:" + webtest.Mallory

func TestCreateTransfer_Screened(t *testing.T) {
	t.Parallel()
	s := startScreened(t)
	owner := pgtest.SignUp(t, s.Store, "ann@example.com").ID
	key := webtest.Keyed(owner, "test")
	pay := func(from, to string) string { return webtest.Body(from, webtest.SepoliaUSDC, "5", to, "", "", "") }
	from, to := pay(malloryOnSepolia, webtest.BobOnSepolia), pay(webtest.AliceOnSepolia, malloryOnSepolia)
	webtest.Same(t, "the source", webtest.NotAllowed(t, "/source/account"), s.Example(t, "an account that is not served", "POST", "/v2/transfers", from, key...))
	once := slices.Concat(key, []string{"Idempotency-Key", "order-1"})
	webtest.Same(t, "the destination", webtest.NotAllowed(t, "/destination/account"), s.Call(t, "POST", "/v2/transfers", to, once...))
	webtest.Same(t, "both", webtest.NotAllowed(t, "/source/account", "/destination/account"), s.Call(t, "POST", "/v2/transfers", pay(malloryOnSepolia, malloryOnSepolia), key...))
	webtest.Same(t, "in lower case", webtest.NotAllowed(t, "/destination/account"),
		s.Call(t, "POST", "/v2/transfers", pay(webtest.AliceOnSepolia, strings.ToLower(malloryOnSepolia)), key...))

	// After 400 and the environment's 403, before what the registry refuses.
	if got := s.Call(t, "POST", "/v2/transfers", strings.Replace(to, `"5"`, `5`, 1), key...); got.Status != 400 {
		t.Errorf("a request that is not valid: %+v", got)
	}
	if got := s.Call(t, "POST", "/v2/transfers", to, webtest.Keyed(owner, "live")...); got.Body.(map[string]any)["code"] != "CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT" {
		t.Errorf("a key of the other environment: %+v", got)
	}
	webtest.Same(t, "an unknown token", webtest.NotAllowed(t, "/destination/account"), s.Call(t, "POST", "/v2/transfers",
		webtest.Body(webtest.AliceOnSepolia, "eip155:11155111:"+webtest.Bob, "5", malloryOnSepolia, "", "", ""), key...))

	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers`); n != 0 {
		t.Errorf("%d intents are recorded", n)
	}
	s.Delist(t, webtest.Mallory)
	if got := s.Call(t, "POST", "/v2/transfers", pay(webtest.AliceOnSepolia, webtest.BobOnSepolia), once...); got.Status != 201 || got.Header["Idempotent-Replayed"] != "" {
		t.Errorf("the key of a refused request: %+v", got)
	}
	want := []string{"create destination " + webtest.Mallory + " Lazarus Group test account key"} // one an hour of an address
	if got := s.Hits(t); len(got) != 1 || !strings.HasPrefix(got[0], "create ") {
		t.Errorf("hits %v, want one such as %v", got, want)
	}
	entries := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(concat_ws(' ', action, repeats, detail, last_detail, ip_address), ',') FROM audit_log WHERE action LIKE 'screening%'`)
	if entries != "screening_refused 4  " {
		t.Errorf("the audit log has %q, want one entry and four repeats", entries)
	}
	s.Unlogged(t, s.Log)
}

func TestCreateTransfer_ScreenedTestAddress(t *testing.T) {
	t.Parallel()
	s := startScreened(t)
	toTest := "eip155:11155111:" + screening.TestAddress
	webtest.Same(t, "in the environment test", webtest.NotAllowed(t, "/destination/account"),
		s.Call(t, "POST", "/v2/transfers", webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", toTest, "", "", ""), webtest.Keyed(uuid.New(), "test")...))
	live := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", "eip155:1:"+screening.TestAddress, "", "", "")
	if got := s.Call(t, "POST", "/v2/transfers", live, webtest.Keyed(uuid.New(), "live")...); got.Status != 201 {
		t.Errorf("in the environment live: %+v", got)
	}
	off := start(t)
	status, _, record := off.CreateTransfer(t, webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", toTest, "", "", ""), webtest.Keyed(uuid.New(), "test")...)
	if status != 201 || !strings.Contains(record, `"screened":false`) {
		t.Errorf("without a list: %d %s", status, record)
	}
}

// A repeat of an intent that exists gets its 201, without what is to be signed.
func TestIdempotencyKey_Screened(t *testing.T) {
	t.Parallel()
	for _, side := range []string{webtest.Alice, webtest.Bob} {
		s := startScreened(t)
		once := slices.Concat(webtest.Keyed(uuid.New(), "test"), []string{"Idempotency-Key", "order-1"})
		first := s.Call(t, "POST", "/v2/transfers", webtest.SwapBody, once...)
		s.List(t, side)
		first.Body.(map[string]any)["tx"], first.Body.(map[string]any)["screened"] = nil, true
		first.Header["Idempotent-Replayed"] = "true"
		webtest.Same(t, "repeated", first, s.Call(t, "POST", "/v2/transfers", webtest.SwapBody, once...))
		other := strings.Replace(webtest.SwapBody, `"4"`, `"3"`, 1)
		if got := s.Call(t, "POST", "/v2/transfers", other, once...); got.Body.(map[string]any)["code"] != "ADDRESS_NOT_ALLOWED" {
			t.Errorf("the key with another body: %+v", got)
		}
		s.Unlogged(t, s.Log)
	}
}

func TestCreateTransfer_ScreenedQuote(t *testing.T) {
	t.Parallel()
	for side, path := range map[string]string{webtest.Alice: "/source/account", webtest.Bob: "/destination/account"} {
		s := startScreened(t, quoting(t, providertest.Start(t, "solver", network.Test)))
		key := webtest.Keyed(uuid.New(), "test")
		id, used := s.quote(t, key...), s.quote(t, key...)
		once := slices.Concat(key, []string{"Idempotency-Key", "order-1"})
		made := s.Call(t, "POST", "/v2/transfers", of(used, ""), once...)
		s.List(t, side)
		webtest.Same(t, "a quote", webtest.NotAllowed(t, path), s.Call(t, "POST", "/v2/transfers", of(id, ""), key...))
		webtest.Same(t, "a quote that was used", webtest.NotAllowed(t, path), s.Call(t, "POST", "/v2/transfers", of(used, ""), key...))
		named := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", `,"quoteId":"`+uuid.NewString()+`"`)
		webtest.Same(t, "a quote that is not there", webtest.NotAllowed(t, path), s.Call(t, "POST", "/v2/transfers", named, key...))
		made.Body.(map[string]any)["tx"], made.Body.(map[string]any)["screened"] = nil, true
		made.Header["Idempotent-Replayed"] = "true"
		webtest.Same(t, "repeated", made, s.Call(t, "POST", "/v2/transfers", of(used, ""), once...))
		if got := s.Call(t, "GET", "/v2/quotes/"+id, "", key...); got.Status != 200 {
			t.Errorf("the quote is not read: %+v", got)
		}
		s.Delist(t, side)
		if got := s.Call(t, "POST", "/v2/transfers", of(id, ""), key...); got.Status != 201 {
			t.Errorf("taken out: %+v", got)
		}
		s.Unlogged(t, s.Log)
	}
}

// No provider is asked about an address that is listed.
func TestCreateQuotes_Screened(t *testing.T) {
	t.Parallel()
	solver := providertest.Start(t, "solver", network.Test)
	s := startScreened(t, quoting(t, solver))
	key := webtest.Keyed(uuid.New(), "test")
	ask := func(from, to, rest string) string {
		return webtest.Body(from, webtest.SepoliaUSDC, "5", to, webtest.BaseUSDC, "", rest)
	}
	webtest.Same(t, "the source", webtest.NotAllowed(t, "/source/account"), s.Example(t, "an account that is not served", "POST", "/v2/quotes", ask(malloryOnSepolia, webtest.BobOnBase, ""), key...))
	webtest.Same(t, "the destination", webtest.NotAllowed(t, "/destination/account"), s.Call(t, "POST", "/v2/quotes", ask(webtest.AliceOnSepolia, "eip155:84532:"+webtest.Mallory, ""), key...))
	if got := s.Call(t, "POST", "/v2/quotes", ask(malloryOnSepolia, webtest.BobOnBase, `,"providers":["nobody"]`), key...); got.Status != 400 {
		t.Errorf("an unknown provider: %+v", got)
	}
	if n := solver.Requests(); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
	if diff := cmp.Diff(1, len(s.Hits(t))); diff != "" {
		t.Error(diff)
	}
	s.Unlogged(t, s.Log)
}

// An account of an intent is listed after it was made, and taken out again.
func TestScreening_HandOuts(t *testing.T) {
	t.Parallel()
	for side, path := range map[string]string{webtest.Alice: "/source/account", webtest.Bob: "/destination/account"} {
		owner := uuid.New()
		account := webtest.Keyed(owner, "test")
		s := startScreened(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(deposited())) })
		_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
		before := s.Call(t, "GET", location, "", account...)
		s.List(t, side)
		withheld := s.Call(t, "GET", location, "", account...)
		expected := s.Call(t, "GET", location, "", account...)
		expected.Body.(map[string]any)["tx"], expected.Body.(map[string]any)["screened"] = nil, true
		webtest.Same(t, "record", expected, withheld)
		webtest.Same(t, "preflight", webtest.NotAllowed(t, path), s.Call(t, "GET", location+"/preflight", "", account...))
		if got := s.Call(t, "GET", "/v2/transfers", "", account...); got.Status != 200 {
			t.Errorf("the list is not read: %+v", got)
		}
		s.Delist(t, side)
		webtest.Same(t, "taken out", before, s.Call(t, "GET", location, "", account...))
		want := "hand-out " + strings.Split(path, "/")[1] + " " + side + " Lazarus Group test account intent"
		if diff := cmp.Diff([]string{want}, s.Hits(t)); diff != "" {
			t.Errorf("hits (-want +got):\n%s", diff)
		}
		s.Unlogged(t, s.Log)
	}
}

func TestGetRefund_Screened(t *testing.T) {
	t.Parallel()
	for side, path := range map[string]string{webtest.Alice: "/source/account", webtest.Bob: "/destination/account"} {
		owner := uuid.New()
		account := webtest.Keyed(owner, "test")
		s := startScreened(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(deposited())) })
		location := s.createOpen(t, owner)
		s.List(t, side)
		webtest.Same(t, "refund", webtest.NotAllowed(t, path), s.Call(t, "GET", location+"/refund", "", account...))
		record := s.Call(t, "GET", location, "", account...)
		if body, _ := record.Body.(map[string]any); body["screened"] != true || body["refundable"] != true {
			t.Errorf("record %+v", body)
		}
		if diff := cmp.Diff(1, len(s.Hits(t))); diff != "" { // the record has no tx to withhold, so that the refund alone is one
			t.Error(diff)
		}
		s.Delist(t, side)
		if got := s.Call(t, "GET", location+"/refund", "", account...); got.Status != 200 {
			t.Errorf("taken out: %+v", got)
		}
	}
}

// What happened is recorded as ever: reports, cancellations, and what they answer, but for the transaction.
func TestScreening_Changes(t *testing.T) {
	t.Parallel()
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	s := startScreened(t)
	_, reported, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	_, cancelled, _ := s.CreateTransfer(t, webtest.SwapBody, account...)
	s.List(t, webtest.Bob)
	report := `{"hash":"` + common.Hash{1}.Hex() + `"}`
	for _, c := range []struct{ path, body, status string }{{reported + "/transaction", report, "submitted"}, {cancelled + "/cancel", "{}", "cancelled"}} {
		got := s.Call(t, "POST", c.path, c.body, account...)
		if record, _ := got.Body.(map[string]any); got.Status != 200 || record["status"] != c.status || record["tx"] != nil || record["screened"] != true {
			t.Errorf("%s: %+v", c.path, got)
		}
	}
	if got := s.Call(t, "GET", "/v2/events", "", account...); got.Status != 200 {
		t.Errorf("events are not read: %+v", got)
	}
	want := []string{
		"chain destination " + webtest.Bob + " Lazarus Group test account intent", "hand-out destination " + webtest.Bob + " Lazarus Group test account intent",
	}
	if diff := cmp.Diff(want, s.Hits(t)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	s.Unlogged(t, s.Log)
}

// Two of the frames that a gateway sends together are refused, and the third is recorded.
func TestServeBatch_Screened(t *testing.T) {
	t.Parallel()
	s := startScreened(t)
	owner := uuid.New()
	var sent []*http.Request
	for _, to := range []string{malloryOnSepolia, webtest.BobOnSepolia, malloryOnSepolia} {
		sent = append(sent, s.CreateRequest(t, owner, uuid.NewString(), webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", to, "", "", "")))
	}
	var status []int
	for _, response := range s.SendGroup(t, sent...) {
		status = append(status, response.StatusCode)
		_, _ = io.Copy(io.Discard, response.Body)
	}
	if diff := cmp.Diff([]int{403, 201, 403}, status); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}
