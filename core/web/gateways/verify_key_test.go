package gateways_test

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
	"intents.internal/core/web/webtest"
)

func TestVerifyKey(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	forever := s.CreateKey(t, `{"name":"ci"}`, ann)
	expiring := s.CreateKey(t, `{"name":"ci","environment":"live","expiresIn":3600}`, ann)
	pgtest.Exec(t, s.Store, `UPDATE api_keys SET limit_requests = 1000, limit_period_seconds = 1, limit_bucket = $2 WHERE id = $1`, expiring.ID, forever.ID)
	accountID := pgtest.LookUp[string](t, s.Store, `SELECT id FROM accounts`)
	verify := func(hash string) string { return `{"hash":"` + hash + `"}` }

	for _, c := range []struct{ key, environment, limit string }{
		{forever.Key, "test", `{"requests":50,"periodSeconds":60}`},
		{expiring.Key, "live", `{"requests":1000,"periodSeconds":1}`},
	} {
		response := s.Send(t, "POST", "/internal/keys/verify", verify(webtest.HashOf(c.key)))
		var got struct {
			KeyID, AccountID, Environment, LimitBucket string
			ExpiresAt                                  *time.Time
			Limit, AccountLimit                        json.RawMessage
		}
		if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &got); err != nil {
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

	pgtest.Exec(t, s.Store, `UPDATE accounts SET limit_requests = 7, limit_period_seconds = 10`)
	limited := s.Send(t, "POST", "/internal/keys/verify", verify(webtest.HashOf(forever.Key)))
	defer limited.Body.Close()
	if body := webtest.ReadAll(t, limited); !strings.Contains(body, `"accountLimit":{"requests":7,"periodSeconds":10}`) {
		t.Errorf("with a limit of the account's own: %s", body)
	}

	pgtest.Exec(t, s.Store, `UPDATE accounts SET origins = '{http://localhost:3000,https://app.example.com}'`)
	for text, want := range map[string]string{
		forever.Key: `"origins":["http://localhost:3000","https://app.example.com"]`, expiring.Key: `"origins":["https://app.example.com"]`,
	} {
		response := s.Send(t, "POST", "/internal/keys/verify", verify(webtest.HashOf(text)))
		if body := webtest.ReadAll(t, response); !strings.Contains(body, want) {
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
		webtest.Same(t, request, webtest.Invalid(t, issues...), s.Call(t, "POST", "/internal/keys/verify", request))
	}
	webtest.Same(t, "no JSON", webtest.Refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json."),
		s.Call(t, "POST", "/internal/keys/verify", verify(webtest.HashOf(forever.Key)), "Content-Type", "text/plain"))

	webtest.Same(t, "not usable", webtest.Refused(t, 404, "INVALID_API_KEY", "No usable key has this hash."),
		s.Call(t, "POST", "/internal/keys/verify", verify(webtest.HashOf("unknown"))))
}

type eventFeed struct {
	Cursor string
	Hashes []string
}

// poll reads the key change feed.
func poll(t *testing.T, s *webtest.Service, after, wait string) eventFeed {
	t.Helper()
	response := s.Send(t, "GET", "/internal/key-changes?after="+url.QueryEscape(after)+"&wait="+wait, "")
	text := webtest.ReadAll(t, response)
	var got eventFeed
	if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != 200 || got.Cursor == "" || got.Hashes == nil {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	return got
}

func TestListKeyChanges(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	made := s.CreateKey(t, `{"name":"ci"}`, ann)
	first := poll(t, s, "", "500ms")
	if len(first.Hashes) != 0 {
		t.Errorf("a new reader is told of %q", first.Hashes)
	}
	if got := s.Call(t, "POST", "/auth/api-key/update", `{"keyId":"`+made.ID+`","enabled":false}`, ann...); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	changed := poll(t, s, first.Cursor, "0s")
	if diff := cmp.Diff([]string{webtest.HashOf(made.Key)}, changed.Hashes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := poll(t, s, changed.Cursor, "0s"); len(got.Hashes) != 0 {
		t.Errorf("told twice: %q", got.Hashes)
	}
	if log := s.Log.String(); strings.Contains(log, "key-changes") {
		t.Errorf("polls that found nothing wrong fill the log:\n%s", log)
	}
}

func TestListKeyChanges_Wait(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	cursor := poll(t, s, "", "500ms").Cursor
	for wait, least := range map[string]time.Duration{"500ms": 500 * time.Millisecond, "250ms": 250 * time.Millisecond, "0s": 0, "0": 0} {
		began := time.Now()
		poll(t, s, cursor, wait)
		if took := time.Since(began); took < least || took > least+10*time.Second {
			t.Errorf("wait=%s with nothing new took %s", wait, took)
		}
	}

	made := s.CreateKey(t, `{"name":"ci"}`, ann)
	cursor = poll(t, s, cursor, "0s").Cursor
	changed := make(chan time.Time, 1)
	go func() {
		_, err := s.Store.Pool().ExecContext(t.Context(), `UPDATE api_keys SET enabled = false`)
		if err != nil {
			t.Error(err)
		}
		changed <- time.Now()
	}()
	var got eventFeed
	for got = poll(t, s, cursor, "500ms"); len(got.Hashes) == 0 && !t.Failed(); { // the change may be later than the first wait
		got = poll(t, s, got.Cursor, "500ms")
	}
	if took := time.Since(<-changed); took > 5*time.Second {
		t.Errorf("the reader heard of a change after %s", took)
	}
	if diff := cmp.Diff([]string{webtest.HashOf(made.Key)}, got.Hashes); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}

	quickest := time.Hour
	for range 5 { // a busy machine may be slow, but not each time
		began := time.Now()
		if again := poll(t, s, cursor, "500ms"); len(again.Hashes) != 1 {
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
	s := webtest.Start(t)
	expired := webtest.Refused(t, 410, "CURSOR_EXPIRED", "The cursor is too old; start again without one.")
	old := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/1:1:", time.Now().Add(-25*time.Hour).Unix()))
	for _, cursor := range []string{"x", "%20", old, base64.RawURLEncoding.EncodeToString([]byte("hello"))} {
		webtest.Same(t, cursor, expired, s.Call(t, "GET", "/internal/key-changes?wait=0s&after="+cursor, ""))
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
		webtest.Same(t, query, webtest.Invalid(t, issues...), s.Call(t, "GET", "/internal/key-changes?"+query, ""))
	}
}
