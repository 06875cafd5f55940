package auth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// key is an enabled key as its owner sees it; shown is `,"key":"<key>"` in the one answer that shows it.
func key(name, environment, expiresAt, shown string) string {
	return fmt.Sprintf(`{"id":"<id>","name":%q,"start":"sk_%[2]s_<start>","prefix":"sk_%[2]s_","environment":%[2]q,"enabled":true,
		"expiresAt":%[3]s,"lastUsedAt":null,"createdAt":"<time>","updatedAt":"<time>",
		"rateLimitEnabled":true,"rateLimitMax":50,"rateLimitTimeWindow":60000,`+unrestricted+`%[4]s}`,
		name, environment, expiresAt, shown)
}

// unrestricted are the members about what a key may do of one that may do everything from anywhere.
const unrestricted = `"scopes":["intents:read","intents:write","webhooks"],"networks":[],
	"permissions":{"intents":["read","write"],"webhooks":["read","write"]}`

const shown = `,"key":"<key>"`

var signedOut = []string{"Cookie", "intents.session=guess"}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	made := func(body string) webtest.Answer { return webtest.Want(t, 200, body, "Cache-Control", "no-store") }
	for request, expected := range map[string]webtest.Answer{
		`{"name":"ci","environment":"test"}`:         made(key("ci", "test", "null", shown)),
		`{"name":"ci","expiresIn":null}`:             made(key("ci", "test", "null", shown)),
		`{"name":"` + strings.Repeat("é", 64) + `"}`: made(key(strings.Repeat("é", 64), "test", "null", shown)),

		`{"name":null}`:                                     webtest.Invalid(t, "/name", "must not be null"),
		`{"name":7}`:                                        webtest.Invalid(t, "/name", "must not be a JSON number"),
		`{"name":{"a":1}}`:                                  webtest.Invalid(t, "/name", "must not be a JSON object"),
		`{"name":"ci","environment":"Live"}`:                webtest.Invalid(t, "/environment", `must be "test" or "live"`),
		`{"name":"ci","expiresIn":0}`:                       webtest.Invalid(t, "/expiresIn", "must be null or 1 to 315360000 seconds"),
		`{"name":"ci","expiresIn":9223372036854775808}`:     webtest.Invalid(t, "/expiresIn", "must be null or 1 to 315360000 seconds"),
		`{"name":"ci","userId":"` + uuid.NewString() + `"}`: webtest.Invalid(t, "/userId", "is not a known field"),
		`{"name":"ci","rateLimitMax":1000}`:                 webtest.Invalid(t, "/rateLimitMax", "is not a known field"),
		`{"Name":"ci"}`:                                     webtest.Invalid(t, "/Name", "is not a known field"),
	} {
		webtest.Same(t, request, expected, s.Call(t, "POST", "/auth/api-key/create", request, ann...))
	}
	webtest.Same(t, "with an API key's identity and no session", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."),
		s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`, webtest.Keyed(uuid.New(), "test")...))
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM api_keys`); n != 3 {
		t.Errorf("%d keys, want 3", n)
	}
}

// listed is a whole list of keys.
func listed(t *testing.T, keys ...string) webtest.Answer {
	t.Helper()
	return webtest.Want(t, 200, fmt.Sprintf(`{"apiKeys":[%s],"total":%d}`, strings.Join(keys, ","), len(keys)), "Cache-Control", "no-store")
}

func TestCreateKey_ShownOnce(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	made := s.CreateKey(t, `{"name":"ci","environment":"live","expiresIn":60}`, ann)
	if !strings.HasPrefix(made.Key, "sk_live_") || made.Start != made.Key[:12] {
		t.Errorf("start %s", made.Start)
	}
	if left := time.Until(*made.ExpiresAt); left < 50*time.Second || left > time.Minute {
		t.Errorf("it expires in %s", left)
	}
	if stored := pgtest.LookUp[string](t, s.Store, `SELECT encode(hash, 'hex') FROM api_keys`); stored != webtest.HashOf(made.Key) {
		t.Errorf("the database keeps %s", stored)
	}
	if found := pgtest.LookUp[bool](t, s.Store, `SELECT position($1 IN api_keys::text) > 0 FROM api_keys`, made.Key[12:]); found {
		t.Error("the key is in the database")
	}
}

func TestUpdateKey(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	id := s.CreateKey(t, `{"name":"ci"}`, ann).ID
	notFound := webtest.Refused(t, 404, "NOT_FOUND", "The account has no such key.")
	for _, c := range []struct {
		request string
		want    webtest.Answer
	}{
		{`{"keyId":"` + id + `","name":" both ","enabled":true}`, webtest.Want(t, 200, key("both", "test", "null", ""))},
		{`{"keyId":"` + id + `"}`, webtest.Invalid(t, "", "names nothing to change; give name, enabled, expiresIn, scopes or networks")},
		{`{"keyId":"` + id + `","name":null,"enabled":null}`, webtest.Invalid(t, "/name", "must not be null")},
		{`{"keyId":"` + id + `","name":""}`, webtest.Invalid(t, "/name", "must have 1 to 64 characters")},
		{`{"keyId":"` + id + `","enabled":"no"}`, webtest.Invalid(t, "/enabled", "must not be a JSON string")},
		{`{"keyId":"` + id + `","expiresIn":60}`, webtest.Want(t, 200, key("both", "test", `"<time>"`, ""))},
		{`{"keyId":"` + id + `","expiresIn":null}`, webtest.Want(t, 200, key("both", "test", "null", ""))},
		{`{"keyId":"` + id + `","expiresIn":0}`, webtest.Invalid(t, "/expiresIn", "must be null or 1 to 315360000 seconds")},
		{`{"keyId":"` + id + `","expiresIn":1.5}`, webtest.Invalid(t, "/expiresIn", "must be a whole number")},
		{`{"keyId":"` + id + `","userId":"` + id + `","enabled":true}`, webtest.Invalid(t, "/userId", "is not a known field")},
		{`{"keyId":"` + uuid.NewString() + `","enabled":true}`, notFound},
		{`{"keyId":"mine","enabled":true}`, notFound},
	} {
		webtest.Same(t, c.request, c.want, s.Call(t, "POST", "/auth/api-key/update", c.request, ann...))
	}
	webtest.Same(t, "another's", notFound, s.Call(t, "POST", "/auth/api-key/update", `{"keyId":"`+id+`","enabled":false}`, bob...))
	webtest.Same(t, "delete with an unknown field", webtest.Invalid(t, "/force", "is not a known field"),
		s.Call(t, "POST", "/auth/api-key/delete", `{"keyId":"`+id+`","force":true}`, ann...))
	webtest.Same(t, "delete another's", notFound, s.Call(t, "POST", "/auth/api-key/delete", `{"keyId":"`+id+`"}`, bob...))
	webtest.Same(t, "in the end", listed(t, key("both", "test", "null", "")),
		s.Call(t, "GET", "/auth/api-key/list", "", ann...))
}

// A hundred keys are the most, also where one is kept beside its successor.
func TestKeys_TooMany(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	id := s.CreateKey(t, `{"name":"ci"}`, ann).ID
	pgtest.Exec(t, s.Store, `INSERT INTO api_keys SELECT made.* FROM api_keys k, generate_series(2, 100) n,
		jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid(), 'hash', sha256(n::text::bytea))) AS made`)
	tooMany := webtest.Refused(t, 409, "TOO_MANY_API_KEYS", "The account has as many keys as it may; delete one first.")
	webtest.Same(t, "the 101st", tooMany, s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`, ann...))
	webtest.Same(t, "kept", tooMany, s.Call(t, "POST", "/auth/api-key/rotate", `{"keyId":"`+id+`","gracePeriod":1}`, ann...))
}
