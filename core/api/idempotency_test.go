package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/postgres/pgtest"
)

// create makes an intent and returns the raw text of the record.
func (s *service) create(t *testing.T, request string, header ...string) (status int, location, record string) {
	t.Helper()
	response := s.send(t, "POST", "/v2/transfers", request, header...)
	return response.StatusCode, response.Header.Get("Location"), readAll(t, response)
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	with := func(key string, rest ...string) []string { return append(rest, "Idempotency-Key", key) }
	ann, bob := keyed(uuid.New(), "test"), keyed(uuid.New(), "test")

	status, location, first := s.create(t, swapBody, with("order-1", ann...)...)
	if status != 201 {
		t.Fatalf("%d %s", status, first)
	}
	for _, spelling := range []string{"order-1", `"order-1"`, "  order-1 "} {
		status, again, record := s.create(t, swapBody, with(spelling, ann...)...)
		if diff := cmp.Diff([]any{201, location, first}, []any{status, again, record}); diff != "" {
			t.Errorf("the same request with %q (-first +second):\n%s", spelling, diff)
		}
	}
	reused := refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	same(t, "another request", reused, s.call(t, "POST", "/v2/transfers", bridgeBody, with("order-1", ann...)...))
	same(t, "another spelling of the request", reused, s.call(t, "POST", "/v2/transfers", swapBody+" ", with("order-1", ann...)...))
	for name, header := range map[string][]string{
		"another key": with("order-2", ann...), "another account": with("order-1", bob...), "no key": ann,
	} {
		if status, again, record := s.create(t, swapBody, header...); status != 201 || again == location {
			t.Errorf("%s: %d %s %s", name, status, again, record)
		}
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM transfers`); n != 4 {
		t.Errorf("%d intents, want 4", n)
	}
}

// A repeated request gets the first answer again, whatever has become of the intent or of the rules since.
func TestIdempotencyOutlivesChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := append(keyed(uuid.New(), "test"), "Idempotency-Key", "order-1")
	soon := time.Now().Add(61 * time.Second).UTC().Format(time.RFC3339)
	request := body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", `,"deadline":"`+soon+`"`)
	_, location, first := s.create(t, request, ann...)
	s.call(t, "POST", location+"/cancel", "", ann...)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for status := 201; status != 422; <-ticker.C { // until the deadline is too near for a new intent
		status, _, _ = s.create(t, request, ann[:len(ann)-2]...)
	}
	if status, again, record := s.create(t, request, ann...); status != 201 || again != location || record != first {
		t.Errorf("%d %s %s", status, again, record)
	}
	if status, _, record := s.create(t, strings.Replace(request, `"5"`, `"6"`, 1), ann...); status != 422 || !strings.Contains(record, "IDEMPOTENCY_KEY_REUSED") {
		t.Errorf("%d %s", status, record)
	}
}

func TestIdempotencyKeyOfARefusedRequestIsFree(t *testing.T) {
	t.Parallel()
	s := start(t)
	header := append(keyed(uuid.New(), "test"), "Idempotency-Key", "order-1")
	if status, _, _ := s.create(t, body(aliceOnSepolia, sepoliaUSDC, "0", bobOnSepolia, "", "", ""), header...); status != 422 {
		t.Fatalf("got %d", status)
	}
	if status, _, record := s.create(t, transferBody, header...); status != 201 {
		t.Errorf("%d %s", status, record)
	}
}

func TestIdempotencyKeyForm(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := keyed(uuid.New(), "test")
	want := invalid(t, "Idempotency-Key", "must be given once, with 1 to 255 printable ASCII characters")
	for name, header := range map[string][]string{
		"twice":         {"Idempotency-Key", "a", "+Idempotency-Key", "b"},
		"empty, quoted": {"Idempotency-Key", `""`},
		"too long":      {"Idempotency-Key", strings.Repeat("k", 256)},
		"not ASCII":     {"Idempotency-Key", "schlüssel"},
		"a quote":       {"Idempotency-Key", `a"b`},
		"half quoted":   {"Idempotency-Key", `"a`},
		"a tab":         {"Idempotency-Key", "a\tb"},
	} {
		same(t, name, want, s.call(t, "POST", "/v2/transfers", transferBody, append(account, header...)...))
	}
	if status, _, record := s.create(t, transferBody, append(account, "Idempotency-Key", strings.Repeat("k", 255))...); status != 201 {
		t.Errorf("255 characters: %d %s", status, record)
	}
}

func TestConcurrentTwinsMakeOneIntent(t *testing.T) {
	t.Parallel()
	s := start(t)
	header := append(keyed(uuid.New(), "test"), "Idempotency-Key", "order-1")
	const twins = 64
	records := make([]string, twins)
	var work sync.WaitGroup
	for i := range twins {
		work.Go(func() { _, _, records[i] = s.create(t, bridgeBody, header...) })
	}
	work.Wait()
	for _, record := range records[1:] {
		if diff := cmp.Diff(records[0], record); diff != "" {
			t.Errorf("twins got different answers:\n%s", diff)
		}
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM transfers`); n != 1 {
		t.Errorf("%d intents", n)
	}
}
