package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/web/webtest"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	with := func(key string, rest ...string) []string { return append(rest, "Idempotency-Key", key) }
	ann := webtest.Keyed(uuid.New(), "test")

	status, location, first := s.CreateTransfer(t, webtest.SwapBody, with("order-1", ann...)...)
	if status != 201 {
		t.Fatalf("%d %s", status, first)
	}
	for _, spelling := range []string{"order-1", `"order-1"`, "  order-1 "} {
		s.replays(t, webtest.SwapBody, location, first, with(spelling, ann...)...)
	}
	reused := webtest.Refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	webtest.Same(t, "another request", reused, s.Call(t, "POST", "/v2/transfers", webtest.BridgeBody, with("order-1", ann...)...))
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
	if status, _, record := s.CreateTransfer(t, webtest.TransferBody, append(account, "Idempotency-Key", strings.Repeat("k", 255))...); status != 201 {
		t.Errorf("255 characters: %d %s", status, record)
	}
}
