package api_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/store/pgtest"
)

func TestRotateKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := signUp(t, s, "ann@example.com"), signUp(t, s, "bob@example.com")
	first := createKey(t, s, `{"name":"ci","environment":"live","expiresIn":3600}`, ann)
	rotate := func(request string, header ...string) answer {
		return s.call(t, "POST", "/auth/api-key/rotate", request, header...)
	}
	notFound := refused(t, 404, "NOT_FOUND", "The account has no such key.")
	const grace = "must be 0 to 86400 seconds"
	for request, expected := range map[string]answer{
		`{"keyId":"` + first.ID + `","gracePeriod":-1}`:    invalid(t, "/gracePeriod", grace),
		`{"keyId":"` + first.ID + `","gracePeriod":86401}`: invalid(t, "/gracePeriod", grace),
		`{"keyId":"` + first.ID + `","gracePeriod":"60"}`:  invalid(t, "/gracePeriod", "must not be a JSON string"),
		`{"keyId":"` + first.ID + `","name":"other"}`:      invalid(t, "/name", "is not a known field"),
		`{"keyId":"` + uuid.NewString() + `"}`:             notFound,
		`{"keyId":"mine"}`:                                 notFound,
		`{}`:                                               notFound,
	} {
		same(t, request, expected, rotate(request, ann...))
	}
	request := `{"keyId":"` + first.ID + `","gracePeriod":60}`
	same(t, "another's", notFound, rotate(request, bob...))
	same(t, "signed out", refused(t, 401, "UNAUTHORIZED", "Sign in first."), rotate(request, signedOut...))

	made := want(t, 200, key("ci", "live", true, `"<time>"`, shown), "Cache-Control", "no-store")
	same(t, "with a grace", made, rotate(request, ann...))
	same(t, "both", listed(t, key("ci", "live", true, `"<time>"`, ""), key("ci", "live", true, `"<time>"`, "")),
		s.call(t, "GET", "/auth/api-key/list", "", ann...))
	rotated := refused(t, 409, "KEY_ROTATED", "The key was rotated; change the one that took its place.")
	same(t, "again", rotated, rotate(request, ann...))
	same(t, "a longer grace", rotated, s.call(t, "POST", "/auth/api-key/update", `{"keyId":"`+first.ID+`","expiresIn":null}`, ann...))
	if left := pgtest.LookUp[time.Duration](t, s.store, `SELECT (extract(epoch FROM expires_at - rotated_at) * 1e9)::bigint FROM api_keys WHERE id = $1`, first.ID); left != time.Minute {
		t.Errorf("the old key works for %s", left)
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(DISTINCT limit_bucket) FROM api_keys`); n != 1 {
		t.Errorf("%d rate limit buckets", n)
	}

	second := createKey(t, s, `{"name":"at once"}`, ann)
	same(t, "without a grace", want(t, 200, key("at once", "test", true, "null", shown), "Cache-Control", "no-store"),
		rotate(`{"keyId":"`+second.ID+`"}`, ann...))
	same(t, "the old key", notFound, s.call(t, "GET", "/auth/api-key/get?id="+second.ID, "", ann...))

	expired := createKey(t, s, `{"name":"expired","expiresIn":1}`, ann)
	pgtest.Exec(t, s.store, `UPDATE api_keys SET created_at = now() - interval '1 hour', expires_at = now() - interval '1 minute' WHERE id = $1`, expired.ID)
	same(t, "expired", refused(t, 409, "KEY_EXPIRED", "The key has expired; create a new one."), rotate(`{"keyId":"`+expired.ID+`"}`, ann...))
}

// The hundredth key can be replaced, but not kept besides its successor.
func TestRotateKey_MaxKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	id := createKey(t, s, `{"name":"ci"}`, ann).ID
	pgtest.Exec(t, s.store, `INSERT INTO api_keys SELECT (jsonb_populate_record(k, jsonb_build_object(
		'id', gen_random_uuid(), 'hash', sha256(n::text::bytea)))).* FROM api_keys k, generate_series(2, 100) n`)
	same(t, "kept", refused(t, 409, "TOO_MANY_API_KEYS", "The account has as many keys as it may; delete one first."),
		s.call(t, "POST", "/auth/api-key/rotate", `{"keyId":"`+id+`","gracePeriod":1}`, ann...))
	same(t, "replaced", want(t, 200, key("ci", "test", true, "null", shown), "Cache-Control", "no-store"),
		s.call(t, "POST", "/auth/api-key/rotate", `{"keyId":"`+id+`","gracePeriod":null}`, ann...))
}
