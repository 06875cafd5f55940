package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/store/pgtest"
)

// key is a key as its owner sees it; shown is `,"key":"<key>"` in the one answer that shows it.
func key(name, environment string, enabled bool, expiresAt, shown string) string {
	return fmt.Sprintf(`{"id":"<id>","name":%q,"start":"sk_%[2]s_<start>","prefix":"sk_%[2]s_","environment":%[2]q,"enabled":%[3]t,
		"expiresAt":%[4]s,"lastUsedAt":null,"createdAt":"<time>","updatedAt":"<time>",
		"rateLimitEnabled":true,"rateLimitMax":50,"rateLimitTimeWindow":60000,`+unrestricted+`%[5]s}`,
		name, environment, enabled, expiresAt, shown)
}

// unrestricted are the members about what a key may do of one that may do everything from anywhere.
const unrestricted = `"scopes":["intents:read","intents:write","webhooks"],"networks":[],
	"permissions":{"intents":["read","write"],"webhooks":["read","write"]}`

const shown = `,"key":"<key>"`

var signedOut = []string{"Cookie", "intents.session=guess"}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	made := func(body string) answer { return want(t, 200, body, "Cache-Control", "no-store") }
	const name, lifetime = "must have 1 to 64 characters", "must be null or 1 to 315360000 seconds"
	for request, expected := range map[string]answer{
		`{"name":"ci"}`:                              made(key("ci", "test", true, "null", shown)),
		`{"name":"  ci ","environment":"live"}`:      made(key("ci", "live", true, "null", shown)),
		`{"name":"ci","environment":"test"}`:         made(key("ci", "test", true, "null", shown)),
		`{"name":"ci","expiresIn":null}`:             made(key("ci", "test", true, "null", shown)),
		`{"name":"ci","expiresIn":1}`:                made(key("ci", "test", true, `"<time>"`, shown)),
		`{"name":"ci","expiresIn":315360000}`:        made(key("ci", "test", true, `"<time>"`, shown)),
		`{"name":"` + strings.Repeat("é", 64) + `"}`: made(key(strings.Repeat("é", 64), "test", true, "null", shown)),
		`{"name":"` + strings.Repeat("é", 65) + `"}`: invalid(t, "/name", name),

		`{"name":""}`:                                       invalid(t, "/name", name),
		`{"name":"   "}`:                                    invalid(t, "/name", name),
		`{"name":"a\u0000b"}`:                               invalid(t, "/name", name),
		`{}`:                                                invalid(t, "/name", name),
		`{"name":null}`:                                     invalid(t, "/name", name),
		`{"name":7}`:                                        invalid(t, "/name", "must not be a JSON number"),
		`{"name":{"a":1}}`:                                  invalid(t, "/name", "must not be a JSON object"),
		`{"name":"ci","environment":"main"}`:                invalid(t, "/environment", `must be "test" or "live"`),
		`{"name":"ci","environment":"Live"}`:                invalid(t, "/environment", `must be "test" or "live"`),
		`{"name":"ci","expiresIn":0}`:                       invalid(t, "/expiresIn", lifetime),
		`{"name":"ci","expiresIn":-1}`:                      invalid(t, "/expiresIn", lifetime),
		`{"name":"ci","expiresIn":315360001}`:               invalid(t, "/expiresIn", lifetime),
		`{"name":"ci","expiresIn":9223372036854775807}`:     invalid(t, "/expiresIn", lifetime),
		`{"name":"ci","expiresIn":9223372036854775808}`:     invalid(t, "/expiresIn", "must not be a JSON number"),
		`{"name":"ci","expiresIn":1.5}`:                     invalid(t, "/expiresIn", "must not be a JSON number"),
		`{"name":"ci","expiresIn":"60"}`:                    invalid(t, "/expiresIn", "must not be a JSON string"),
		`{"name":"ci","userId":"` + uuid.NewString() + `"}`: invalid(t, "/userId", "is not a known field"),
		`{"name":"ci","key":"sk_test_mine"}`:                invalid(t, "/key", "is not a known field"),
		`{"name":"ci","rateLimitMax":1000}`:                 invalid(t, "/rateLimitMax", "is not a known field"),
		`{"Name":"ci"}`:                                     invalid(t, "/Name", "is not a known field"),
	} {
		same(t, request, expected, s.call(t, "POST", "/auth/api-key/create", request, ann...))
	}
	out := refused(t, 401, "UNAUTHORIZED", "Sign in first.")
	same(t, "signed out", out, s.call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`, signedOut...))
	same(t, "no cookie", out, s.call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`))
	same(t, "with an API key's identity instead", out, s.call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`, keyed(uuid.New(), "test")...))
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM api_keys`); n != 7 {
		t.Errorf("%d keys, want 7", n)
	}
}

type shownKey struct {
	ID, Key, Start string
	ExpiresAt      *time.Time
}

// createKey makes a key as its owner does.
func createKey(t *testing.T, s *service, request string, owner []string) shownKey {
	t.Helper()
	var made shownKey
	response := s.send(t, "POST", "/auth/api-key/create", request, owner...)
	if err := json.Unmarshal([]byte(readAll(t, response)), &made); err != nil || response.StatusCode != 200 {
		t.Fatalf("%d, %v", response.StatusCode, err)
	}
	return made
}

// listed is a whole list of keys.
func listed(t *testing.T, keys ...string) answer {
	t.Helper()
	return want(t, 200, fmt.Sprintf(`{"apiKeys":[%s],"total":%d}`, strings.Join(keys, ","), len(keys)), "Cache-Control", "no-store")
}

func TestCreateKey_ShownOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	made := createKey(t, s, `{"name":"ci","environment":"live","expiresIn":60}`, ann)
	if !strings.HasPrefix(made.Key, "sk_live_") || made.Start != made.Key[:12] {
		t.Errorf("start %s", made.Start)
	}
	if left := time.Until(*made.ExpiresAt); left < 50*time.Second || left > time.Minute {
		t.Errorf("it expires in %s", left)
	}
	if stored := pgtest.LookUp[string](t, s.store, `SELECT encode(hash, 'hex') FROM api_keys`); stored != hashOf(made.Key) {
		t.Errorf("the database keeps %s", stored)
	}
	if found := pgtest.LookUp[bool](t, s.store, `SELECT position($1 IN api_keys::text) > 0 FROM api_keys`, made.Key[12:]); found {
		t.Error("the key is in the database")
	}
	same(t, "list", listed(t, key("ci", "live", true, `"<time>"`, "")),
		s.call(t, "GET", "/auth/api-key/list", "", ann...))
	same(t, "update", want(t, 200, key("renamed", "live", true, `"<time>"`, "")),
		s.call(t, "POST", "/auth/api-key/update", `{"keyId":"`+made.ID+`","name":"renamed"}`, ann...))
}

func TestListKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := signUp(t, s, "ann@example.com"), signUp(t, s, "bob@example.com")
	same(t, "none", listed(t), s.call(t, "GET", "/auth/api-key/list", "", ann...))
	createKey(t, s, `{"name":"first"}`, ann)
	createKey(t, s, `{"name":"second","environment":"live"}`, ann)
	createKey(t, s, `{"name":"another's"}`, bob)
	same(t, "newest first", listed(t, key("second", "live", true, "null", ""), key("first", "test", true, "null", "")),
		s.call(t, "GET", "/auth/api-key/list", "", ann...))
	same(t, "signed out", refused(t, 401, "UNAUTHORIZED", "Sign in first."), s.call(t, "GET", "/auth/api-key/list", "", signedOut...))
}

func TestUpdateKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := signUp(t, s, "ann@example.com"), signUp(t, s, "bob@example.com")
	id := createKey(t, s, `{"name":"ci"}`, ann).ID
	notFound := refused(t, 404, "NOT_FOUND", "The account has no such key.")
	for _, c := range []struct {
		request string
		want    answer
	}{
		{`{"keyId":"` + id + `","enabled":false}`, want(t, 200, key("ci", "test", false, "null", ""))},
		{`{"keyId":"` + id + `","name":"renamed"}`, want(t, 200, key("renamed", "test", false, "null", ""))},
		{`{"keyId":"` + id + `","name":" both ","enabled":true}`, want(t, 200, key("both", "test", true, "null", ""))},
		{`{"keyId":"` + id + `"}`, invalid(t, "", "names nothing to change; give name, enabled, expiresIn, scopes or networks")},
		{`{"keyId":"` + id + `","name":null,"enabled":null}`, invalid(t, "", "names nothing to change; give name, enabled, expiresIn, scopes or networks")},
		{`{"keyId":"` + id + `","name":""}`, invalid(t, "/name", "must have 1 to 64 characters")},
		{`{"keyId":"` + id + `","enabled":"no"}`, invalid(t, "/enabled", "must not be a JSON string")},
		{`{"keyId":"` + id + `","expiresIn":60}`, want(t, 200, key("both", "test", true, `"<time>"`, ""))},
		{`{"keyId":"` + id + `","expiresIn":null}`, want(t, 200, key("both", "test", true, "null", ""))},
		{`{"keyId":"` + id + `","expiresIn":0}`, invalid(t, "/expiresIn", "must be null or 1 to 315360000 seconds")},
		{`{"keyId":"` + id + `","expiresIn":315360001}`, invalid(t, "/expiresIn", "must be null or 1 to 315360000 seconds")},
		{`{"keyId":"` + id + `","expiresIn":"60"}`, invalid(t, "/expiresIn", "must not be a JSON string")},
		{`{"keyId":"` + id + `","expiresIn":1.5}`, invalid(t, "/expiresIn", "must not be a JSON number")},
		{`{"keyId":"` + id + `","userId":"` + id + `","enabled":true}`, invalid(t, "/userId", "is not a known field")},
		{`{"keyId":"` + uuid.NewString() + `","enabled":true}`, notFound},
		{`{"keyId":"mine","enabled":true}`, notFound},
		{`{"enabled":true}`, notFound},
	} {
		same(t, c.request, c.want, s.call(t, "POST", "/auth/api-key/update", c.request, ann...))
	}
	request := `{"keyId":"` + id + `","enabled":false}`
	same(t, "another's", notFound, s.call(t, "POST", "/auth/api-key/update", request, bob...))
	same(t, "signed out", refused(t, 401, "UNAUTHORIZED", "Sign in first."), s.call(t, "POST", "/auth/api-key/update", request, signedOut...))
	same(t, "in the end", listed(t, key("both", "test", true, "null", "")),
		s.call(t, "GET", "/auth/api-key/list", "", ann...))
}

func TestDeleteKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := signUp(t, s, "ann@example.com"), signUp(t, s, "bob@example.com")
	id := createKey(t, s, `{"name":"ci"}`, ann).ID
	notFound := refused(t, 404, "NOT_FOUND", "The account has no such key.")
	request := `{"keyId":"` + id + `"}`
	same(t, "another's", notFound, s.call(t, "POST", "/auth/api-key/delete", request, bob...))
	same(t, "signed out", refused(t, 401, "UNAUTHORIZED", "Sign in first."), s.call(t, "POST", "/auth/api-key/delete", request, signedOut...))
	same(t, "unknown", notFound, s.call(t, "POST", "/auth/api-key/delete", `{"keyId":"`+uuid.NewString()+`"}`, ann...))
	same(t, "no id", notFound, s.call(t, "POST", "/auth/api-key/delete", `{}`, ann...))
	same(t, "unknown field", invalid(t, "/force", "is not a known field"), s.call(t, "POST", "/auth/api-key/delete", `{"keyId":"`+id+`","force":true}`, ann...))
	same(t, "mine", want(t, 200, `{"success":true}`), s.call(t, "POST", "/auth/api-key/delete", request, ann...))
	same(t, "again", notFound, s.call(t, "POST", "/auth/api-key/delete", request, ann...))
	same(t, "changed after that", notFound, s.call(t, "POST", "/auth/api-key/update", `{"keyId":"`+id+`","enabled":true}`, ann...))
	same(t, "list", listed(t), s.call(t, "GET", "/auth/api-key/list", "", ann...))
}

func TestCreateKey_MaxKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	createKey(t, s, `{"name":"ci"}`, ann)
	pgtest.Exec(t, s.store, `INSERT INTO api_keys SELECT (jsonb_populate_record(k, jsonb_build_object(
		'id', gen_random_uuid(), 'hash', sha256(n::text::bytea)))).* FROM api_keys k, generate_series(2, 100) n`)
	same(t, "the 101st", refused(t, 409, "TOO_MANY_API_KEYS", "The account has as many keys as it may; delete one first."),
		s.call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`, ann...))
}
