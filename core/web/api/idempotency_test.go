package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// create makes an intent and returns the raw text of the record.
func (s *service) create(t *testing.T, request string, header ...string) (status int, location, record string) {
	t.Helper()
	response := s.Send(t, "POST", "/v2/transfers", request, header...)
	return response.StatusCode, response.Header.Get("Location"), webtest.ReadAll(t, response)
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	with := func(key string, rest ...string) []string { return append(rest, "Idempotency-Key", key) }
	ann, bob := webtest.Keyed(uuid.New(), "test"), webtest.Keyed(uuid.New(), "test")

	status, location, first := s.create(t, webtest.SwapBody, with("order-1", ann...)...)
	if status != 201 {
		t.Fatalf("%d %s", status, first)
	}
	for _, spelling := range []string{"order-1", `"order-1"`, "  order-1 "} {
		s.replays(t, webtest.SwapBody, location, first, with(spelling, ann...)...)
	}
	reused := webtest.Refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	webtest.Same(t, "another request", reused, s.Call(t, "POST", "/v2/transfers", webtest.BridgeBody, with("order-1", ann...)...))
	for name, header := range map[string][]string{
		"another key": with("order-2", ann...), "another account": with("order-1", bob...), "no key": ann,
	} {
		if status, again, record := s.create(t, webtest.SwapBody, header...); status != 201 || again == location {
			t.Errorf("%s: %d %s %s", name, status, again, record)
		}
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers`); n != 4 {
		t.Errorf("%d intents, want 4", n)
	}
}

// replays repeats a request and wants its first answer again, which tells that it is one.
func (s *service) replays(t *testing.T, request, location, first string, header ...string) {
	t.Helper()
	response := s.Send(t, "POST", "/v2/transfers", request, header...)
	got := []any{response.StatusCode, response.Header.Get("Location"), response.Header.Get("Idempotent-Replayed"), webtest.ReadAll(t, response)}
	if diff := cmp.Diff([]any{201, location, "true", first}, got); diff != "" {
		t.Errorf("%s again (-first +second):\n%s", request, diff)
	}
}

// The same request is one that asks for the same, however it is spelled; another value of any member makes another.
func TestIdempotencyKey_Spellings(t *testing.T) {
	t.Parallel()
	s := start(t)
	header := append(webtest.Keyed(uuid.New(), "test"), "Idempotency-Key", "order-1")
	request := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"reference":"a/b","labels":{"a":"1","b":"<2>"}`)
	response := s.Send(t, "POST", "/v2/transfers", request, header...)
	location, replayed, first := response.Header.Get("Location"), response.Header.Get("Idempotent-Replayed"), webtest.ReadAll(t, response)
	var made struct{ Deadline string }
	if err := json.Unmarshal([]byte(first), &made); err != nil || replayed != "" {
		t.Fatalf("%v, replayed %q: %s", err, replayed, first)
	}
	var members struct{ Source, Destination json.RawMessage }
	if err := json.Unmarshal([]byte(request), &members); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{
		" " + strings.ReplaceAll(request, ",", " ,\n\t") + "\n",
		`{"labels":{"b":"\u003c2>","\u0061":"1"},"reference":"a/b","destination":` + string(members.Destination) + `,"source":` + string(members.Source) + `}`,
		strings.Replace(request, "a/b", `\u0061\/b`, 1),
		strings.Replace(request, webtest.Alice, strings.ToLower(webtest.Alice), 1),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaUSDC, "5", `,"reference":"a/b","labels":{"a":"1","b":"<2>"}`),
		strings.TrimSuffix(request, "}") + `,"deadline":"` + made.Deadline + `"}`,
	} {
		s.replays(t, same, location, first, header...)
	}
	reused := webtest.Refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	in := time.Now().Add(90 * time.Minute).UTC().Format(time.RFC3339)
	for _, other := range []string{
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "6", webtest.BobOnSepolia, "", "", `,"reference":"a/b","labels":{"a":"1","b":"<2>"}`),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", "eip155:11155111:0x71c7656ec7ab88b098defb751b7401b5f6d8976f", "", "", `,"reference":"a/b","labels":{"a":"1","b":"<2>"}`),
		webtest.Body(webtest.BobOnSepolia, webtest.SepoliaUSDC, "5", webtest.AliceOnSepolia, "", "", `,"reference":"a/b","labels":{"a":"1","b":"<2>"}`),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaWETH, "5", webtest.BobOnSepolia, "", "", `,"reference":"a/b","labels":{"a":"1","b":"<2>"}`),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaWETH, "5", `,"reference":"a/b","labels":{"a":"1","b":"<2>"}`),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"reference":"A/b","labels":{"a":"1","b":"<2>"}`),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"labels":{"a":"1","b":"<2>"}`),
		strings.Replace(request, "<2>", "<3>", 1), strings.Replace(request, `"b":`, `"c":`, 1), strings.Replace(request, `,"b":"<2>"`, "", 1),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"reference":"a/b"`),
		strings.TrimSuffix(request, "}") + `,"deadline":"` + in + `"}`,
	} {
		webtest.Same(t, other, reused, s.Call(t, "POST", "/v2/transfers", other, header...))
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers`); n != 1 {
		t.Errorf("%d intents, want 1", n)
	}
}

// Test and live keys of one account do not share idempotency keys.
func TestIdempotencyKey_Environments(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	test := append(webtest.Keyed(owner, "test"), "Idempotency-Key", "order-1")
	live := append(webtest.Keyed(owner, "live"), "Idempotency-Key", "order-1")
	onMainnet := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", webtest.BobOnMainnet, "", "", "")
	_, testLocation, testRecord := s.create(t, webtest.TransferBody, test...)
	status, liveLocation, liveRecord := s.create(t, onMainnet, live...)
	if status != 201 || testLocation == liveLocation {
		t.Fatalf("%d %s", status, liveRecord)
	}
	s.replays(t, webtest.TransferBody, testLocation, testRecord, test...)
	s.replays(t, onMainnet, liveLocation, liveRecord, live...)
}

// A request without a deadline gets what its chain needs, where that is more than an hour, and repeats as any other.
func TestIdempotencyKey_SlowChain(t *testing.T) {
	t.Parallel()
	s := start(t)
	pgtest.Exec(t, s.Store, "UPDATE chains SET confirmations = 10000, block_time_ms = 12000 WHERE id = 'eip155:11155111'")
	if err := s.Live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	header := append(webtest.Keyed(uuid.New(), "test"), "Idempotency-Key", "order-1")
	status, location, record := s.create(t, webtest.BridgeBody, header...)
	if status != 201 {
		t.Fatalf("%d %s", status, record)
	}
	s.replays(t, webtest.BridgeBody, location, record, header...)
}

func TestIdempotencyKey_RefusedRequest(t *testing.T) {
	t.Parallel()
	s := start(t)
	header := append(webtest.Keyed(uuid.New(), "test"), "Idempotency-Key", "order-1")
	if status, _, _ := s.create(t, webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "0", webtest.BobOnSepolia, "", "", ""), header...); status != 422 {
		t.Fatalf("got %d", status)
	}
	if status, _, record := s.create(t, webtest.TransferBody, header...); status != 201 {
		t.Errorf("%d %s", status, record)
	}
}

func TestIdempotencyKey_Invalid(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	want := webtest.Invalid(t, "Idempotency-Key", "must be given once, with 1 to 255 printable ASCII characters")
	for name, header := range map[string][]string{
		"twice":         {"Idempotency-Key", "a", "+Idempotency-Key", "b"},
		"empty, quoted": {"Idempotency-Key", `""`},
		"too long":      {"Idempotency-Key", strings.Repeat("k", 256)},
		"not ASCII":     {"Idempotency-Key", "schlüssel"},
		"a quote":       {"Idempotency-Key", `a"b`},
		"half quoted":   {"Idempotency-Key", `"a`},
		"a tab":         {"Idempotency-Key", "a\tb"},
	} {
		webtest.Same(t, name, want, s.Call(t, "POST", "/v2/transfers", webtest.TransferBody, append(account, header...)...))
	}
	if status, _, record := s.create(t, webtest.TransferBody, append(account, "Idempotency-Key", strings.Repeat("k", 255))...); status != 201 {
		t.Errorf("255 characters: %d %s", status, record)
	}
}
