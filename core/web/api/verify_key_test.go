package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
)

func TestVerifyKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	forever := createKey(t, s, `{"name":"ci"}`, ann)
	expiring := createKey(t, s, `{"name":"ci","environment":"live","expiresIn":3600}`, ann)
	pgtest.Exec(t, s.store, `UPDATE api_keys SET limit_requests = 1000, limit_period_seconds = 1, limit_bucket = $2 WHERE id = $1`, expiring.ID, forever.ID)
	accountID := pgtest.LookUp[string](t, s.store, `SELECT id FROM accounts`)
	verify := func(hash string) string { return `{"hash":"` + hash + `"}` }

	for _, c := range []struct{ key, environment, limit string }{
		{forever.Key, "test", `{"requests":50,"periodSeconds":60}`},
		{expiring.Key, "live", `{"requests":1000,"periodSeconds":1}`},
	} {
		response := s.send(t, "POST", "/internal/keys/verify", verify(hashOf(c.key)))
		var got struct {
			KeyID, AccountID, Environment, LimitBucket string
			ExpiresAt                                  *time.Time
			Limit, AccountLimit                        json.RawMessage
		}
		if err := json.Unmarshal([]byte(readAll(t, response)), &got); err != nil {
			t.Fatal(err)
		}
		keyID, expires := forever.ID, got.ExpiresAt == nil
		if c.key == expiring.Key {
			keyID, expires = expiring.ID, got.ExpiresAt != nil && got.ExpiresAt.Truncate(time.Millisecond).Equal(*expiring.ExpiresAt)
		}
		want := []any{200, keyID, accountID, c.environment, true, c.limit, `{"requests":1000,"periodSeconds":60}`, forever.ID}
		if diff := cmp.Diff(want, []any{response.StatusCode, got.KeyID, got.AccountID, got.Environment, expires, string(got.Limit), string(got.AccountLimit), got.LimitBucket}); diff != "" {
			t.Errorf("%s key (-want +got):\n%s", c.environment, diff)
		}
	}

	pgtest.Exec(t, s.store, `UPDATE accounts SET limit_requests = 7, limit_period_seconds = 10`)
	limited := s.send(t, "POST", "/internal/keys/verify", verify(hashOf(forever.Key)))
	defer limited.Body.Close()
	if body := readAll(t, limited); !strings.Contains(body, `"accountLimit":{"requests":7,"periodSeconds":10}`) {
		t.Errorf("with a limit of the account's own: %s", body)
	}

	pgtest.Exec(t, s.store, `UPDATE accounts SET origins = '{http://localhost:3000,https://app.example.com}'`)
	for text, want := range map[string]string{
		forever.Key: `"origins":["http://localhost:3000","https://app.example.com"]`, expiring.Key: `"origins":["https://app.example.com"]`,
	} {
		response := s.send(t, "POST", "/internal/keys/verify", verify(hashOf(text))) //nolint:bodyclose // readAll closes it
		if body := readAll(t, response); !strings.Contains(body, want) {
			t.Errorf("with origins: %s, want %s", body, want)
		}
	}

	const notHash = "must be 64 hexadecimal digits"
	for request, issues := range map[string][]string{
		verify(""):                      {"/hash", notHash},
		verify(strings.Repeat("0", 63)): {"/hash", notHash},
		verify(strings.Repeat("0", 66)): {"/hash", notHash},
		verify(strings.Repeat("g", 64)): {"/hash", notHash},
		`{}`:                            {"/hash", notHash},
		`{"hash":1}`:                    {"/hash", "must not be a JSON number"},
		`{"key":"` + forever.Key + `"}`: {"/key", "is not a known field"},
	} {
		same(t, request, invalid(t, issues...), s.call(t, "POST", "/internal/keys/verify", request))
	}
	same(t, "no JSON", refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json."),
		s.call(t, "POST", "/internal/keys/verify", verify(hashOf(forever.Key)), "Content-Type", "text/plain"))

	same(t, "not usable", refused(t, 404, "INVALID_API_KEY", "No usable key has this hash."),
		s.call(t, "POST", "/internal/keys/verify", verify(hashOf("unknown"))))
}

type eventFeed struct {
	Cursor string
	Hashes []string
}

// poll reads the key change feed.
func (s *service) poll(t *testing.T, after, wait string) eventFeed {
	t.Helper()
	response := s.send(t, "GET", "/internal/key-changes?after="+url.QueryEscape(after)+"&wait="+wait, "")
	text := readAll(t, response)
	var got eventFeed
	if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != 200 || got.Cursor == "" || got.Hashes == nil {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	return got
}

func TestListKeyChanges(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	made := createKey(t, s, `{"name":"ci"}`, ann)
	first := s.poll(t, "", "500ms")
	if len(first.Hashes) != 0 {
		t.Errorf("a new reader is told of %q", first.Hashes)
	}
	if got := s.call(t, "POST", "/auth/api-key/update", `{"keyId":"`+made.ID+`","enabled":false}`, ann...); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	changed := s.poll(t, first.Cursor, "0s")
	if diff := cmp.Diff([]string{hashOf(made.Key)}, changed.Hashes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.poll(t, changed.Cursor, "0s"); len(got.Hashes) != 0 {
		t.Errorf("told twice: %q", got.Hashes)
	}
	if log := s.log.String(); strings.Contains(log, "key-changes") {
		t.Errorf("polls that found nothing wrong fill the log:\n%s", log)
	}
}

func TestListKeyChanges_Wait(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	cursor := s.poll(t, "", "500ms").Cursor
	for wait, least := range map[string]time.Duration{"500ms": 500 * time.Millisecond, "250ms": 250 * time.Millisecond, "0s": 0, "0": 0} {
		began := time.Now()
		s.poll(t, cursor, wait)
		if took := time.Since(began); took < least || took > least+10*time.Second {
			t.Errorf("wait=%s with nothing new took %s", wait, took)
		}
	}

	made := createKey(t, s, `{"name":"ci"}`, ann)
	cursor = s.poll(t, cursor, "0s").Cursor
	changed := make(chan time.Time, 1)
	go func() {
		_, err := s.store.Pool().ExecContext(t.Context(), `UPDATE api_keys SET enabled = false`)
		if err != nil {
			t.Error(err)
		}
		changed <- time.Now()
	}()
	var got eventFeed
	for got = s.poll(t, cursor, "500ms"); len(got.Hashes) == 0 && !t.Failed(); { // the change may be later than the first wait
		got = s.poll(t, got.Cursor, "500ms")
	}
	if took := time.Since(<-changed); took > 5*time.Second {
		t.Errorf("the reader heard of a change after %s", took)
	}
	if diff := cmp.Diff([]string{hashOf(made.Key)}, got.Hashes); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}

	quickest := time.Hour
	for range 5 { // a busy machine may be slow, but not each time
		began := time.Now()
		if again := s.poll(t, cursor, "500ms"); len(again.Hashes) != 1 {
			t.Errorf("told of %q", again.Hashes)
		}
		quickest = min(quickest, time.Since(began))
	}
	if quickest > 400*time.Millisecond {
		t.Errorf("what is there already was told after %s", quickest)
	}
}

func TestListKeyChanges_InvalidQuery(t *testing.T) {
	t.Parallel()
	s := start(t)
	expired := refused(t, 410, "CURSOR_EXPIRED", "The cursor is too old; start again without one.")
	old := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/1:1:", time.Now().Add(-25*time.Hour).Unix()))
	for _, cursor := range []string{"x", "%20", old, base64.RawURLEncoding.EncodeToString([]byte("hello"))} {
		same(t, cursor, expired, s.call(t, "GET", "/internal/key-changes?wait=0s&after="+cursor, ""))
	}
	for query, issues := range map[string][]string{
		"wait=501ms":  {"wait", "must be a duration up to 500ms"},
		"wait=-1ms":   {"wait", "must be a duration up to 500ms"},
		"wait=500":    {"wait", "must be a duration up to 500ms"},
		"wait=":       {"wait", "must be a duration up to 500ms"},
		"since=1":     {"since", "is not a known parameter"},
		"after=%00":   {"after", "must not hold a NUL character"},
		"wait=1&wait": {"wait", "is given twice"},
	} {
		same(t, query, invalid(t, issues...), s.call(t, "GET", "/internal/key-changes?"+query, ""))
	}
}
