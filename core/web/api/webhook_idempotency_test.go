package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// createHook makes a webhook and returns the whole response.
func createHook(t *testing.T, s *service, body string, header ...string) (status int, replayed, text string) {
	t.Helper()
	response := s.Send(t, "POST", "/v2/webhooks", body, header...)
	return response.StatusCode, response.Header.Get("Idempotent-Replayed"), webtest.ReadAll(t, response)
}

// A webhook without types has null in the response, with an Idempotency-Key and without.
func TestCreateWebhook_AllTypes(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	for _, header := range [][]string{key, append(slices.Clip(key), "Idempotency-Key", "hook-1")} {
		if _, _, text := createHook(t, s, `{"url":"https://example.com/hooks"}`, header...); !strings.Contains(text, `"types":null`) {
			t.Errorf("the response is %s", text)
		}
	}
}

// The same request with the same key makes one webhook and shows its secret again; another request is refused.
func TestCreateWebhook_IdempotencyKey(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	_, stranger := s.NewOwner(t)
	live := webtest.Keyed(uuid.MustParse(key[1]), "live")
	with := func(name string, header []string) []string {
		return append(slices.Clip(header), "Idempotency-Key", name)
	}
	status, replayed, first := createHook(t, s, webtest.HookBody, with("hook-1", key)...)
	if status != http.StatusCreated || replayed != "" || !strings.Contains(first, `"secret":"whsec_`) {
		t.Fatalf("%d %q %s", status, replayed, first)
	}
	again := func(body, name string) {
		t.Helper()
		status, replayed, text := createHook(t, s, body, with(name, key)...)
		if diff := cmp.Diff([]any{http.StatusCreated, "true", first}, []any{status, replayed, text}); diff != "" {
			t.Errorf("%s with %s (-first +again):\n%s", body, name, diff)
		}
	}
	again(webtest.HookBody, "hook-1")
	again(`{ "types": ["transfer.*"], "description": "", "url": "https://example.com/hooks" }`, `"hook-1"`)
	reused := webtest.Refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	webtest.Same(t, "another request", reused, s.Call(t, "POST", "/v2/webhooks", `{"url":"https://example.com/other"}`, with("hook-1", key)...))
	webtest.Same(t, "an empty key", webtest.Invalid(t, "Idempotency-Key", "must be given once, with 1 to 255 printable ASCII characters"),
		s.Call(t, "POST", "/v2/webhooks", webtest.HookBody, with(`""`, key)...))
	for name, header := range map[string][]string{
		"another key": with("hook-2", key), "another account": with("hook-1", stranger), "another environment": with("hook-1", live), "no key": key,
	} {
		if status, replayed, text := createHook(t, s, webtest.HookBody, header...); status != http.StatusCreated || replayed != "" || text == first {
			t.Errorf("%s: %d %q %s", name, status, replayed, text)
		}
	}
	if n := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM webhooks WHERE account_id = $1 AND environment = 'test'", key[1]); n != 3 {
		t.Errorf("%d webhooks, want 3", n)
	}
	// The first response comes again, whatever has become of the webhook.
	var created struct{ ID string }
	if err := json.Unmarshal([]byte(first), &created); err != nil {
		t.Fatal(err)
	}
	if got := s.Call(t, "POST", "/v2/webhooks/"+created.ID+"/rotate-secret", "", key...); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	if got := s.Call(t, "DELETE", "/v2/webhooks/"+created.ID, "", key...); got.Status != 204 {
		t.Fatalf("%+v", got)
	}
	again(webtest.HookBody, "hook-1")
	if entries := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM audit_log WHERE account_id = $1 AND action = $2", key[1], account.WebhookCreated); entries != 4 {
		t.Errorf("%d webhooks were created by the audit log, want 4", entries)
	}
	if plain := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM webhook_requests WHERE position('whsec_'::bytea IN response) > 0"); plain != 0 {
		t.Errorf("%d secrets are stored in plain", plain)
	}
	pgtest.Exec(t, s.Store, "UPDATE webhook_requests SET expires_at = now() - interval '1 second'")
	if status, replayed, text := createHook(t, s, webtest.HookBody, with("hook-1", key)...); status != http.StatusCreated || replayed != "" || text == first {
		t.Errorf("a day later: %d %q %s", status, replayed, text)
	}
}

// Requests that come at once with one key make one webhook.
func TestCreateWebhook_IdempotencyKeyConcurrently(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	var mu sync.Mutex
	answers := map[string]int{}
	var requests sync.WaitGroup
	for range 8 {
		requests.Go(func() {
			_, _, text := createHook(t, s, webtest.HookBody, append(slices.Clip(key), "Idempotency-Key", "hook-1")...)
			mu.Lock()
			defer mu.Unlock()
			answers[text]++
		})
	}
	requests.Wait()
	if len(answers) != 1 {
		t.Errorf("%d different answers: %v", len(answers), answers)
	}
	if n := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM webhooks WHERE account_id = $1", key[1]); n != 1 {
		t.Errorf("%d webhooks", n)
	}
}

// A webhook of which nobody knows whether it was made is asked for again with the same key, and made once.
func TestCreateWebhook_OutcomeUnknown(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct, gate := pgtest.Open(t, url), pgtest.NewGate(t, url)
	s := startOn(t, pgtest.Open(t, gate.URL), webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	key = append(key, "Idempotency-Key", "hook-1")
	block := pgtest.BlockCommits(t, direct, "webhooks")
	answered := make(chan webtest.Answer, 1)
	go func() { answered <- s.Call(t, "POST", "/v2/webhooks", webtest.HookBody, key...) }()
	block.Await(t, 1)
	gate.Shut()
	want := webtest.Refused(t, 503, "OUTCOME_UNKNOWN", "The database did not confirm the write, which may have been carried out. "+
		"Repeat it with the same Idempotency-Key, which carries it out at most once.", "Retry-After", "1")
	webtest.Same(t, "lost at COMMIT", want, <-answered)
	block.Release(t)
	gate.Heal()
	if status, replayed, text := createHook(t, s, webtest.HookBody, key...); status != http.StatusCreated || replayed != "true" {
		t.Errorf("repeated: %d %q %s", status, replayed, text)
	}
}
