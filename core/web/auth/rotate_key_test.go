package auth_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestRotateKey(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	first := s.CreateKey(t, `{"name":"ci","environment":"live","expiresIn":3600}`, ann)
	rotate := func(request string, header ...string) webtest.Answer {
		return s.Call(t, "POST", "/auth/api-key/rotate", request, header...)
	}
	notFound := webtest.Refused(t, 404, "NOT_FOUND", "The account has no such key.")
	for request, expected := range map[string]webtest.Answer{
		`{"keyId":"` + first.ID + `","gracePeriod":-1}`:   webtest.Invalid(t, "/gracePeriod", "must be 0 to 86400 seconds"),
		`{"keyId":"` + first.ID + `","gracePeriod":"60"}`: webtest.Invalid(t, "/gracePeriod", "must not be a JSON string"),
		`{"keyId":"` + first.ID + `","name":"other"}`:     webtest.Invalid(t, "/name", "is not a known field"),
		`{"keyId":"` + uuid.NewString() + `"}`:            notFound,
	} {
		webtest.Same(t, request, expected, rotate(request, ann...))
	}
	request := `{"keyId":"` + first.ID + `","gracePeriod":60}`
	webtest.Same(t, "another's", notFound, rotate(request, bob...))

	made := webtest.Want(t, 200, key("ci", "live", `"<time>"`, shown), "Cache-Control", "no-store")
	webtest.Same(t, "with a grace", made, rotate(request, ann...))
	rotated := webtest.Refused(t, 409, "KEY_ROTATED", "The key was rotated; change the one that took its place.")
	webtest.Same(t, "again", rotated, rotate(request, ann...))
	webtest.Same(t, "a longer grace", rotated, s.Call(t, "POST", "/auth/api-key/update", `{"keyId":"`+first.ID+`","expiresIn":null}`, ann...))
	if left := pgtest.LookUp[time.Duration](t, s.Store, `SELECT (extract(epoch FROM expires_at - rotated_at) * 1e9)::bigint FROM api_keys WHERE id = $1`, first.ID); left != time.Minute {
		t.Errorf("the old key works for %s", left)
	}

	second := s.CreateKey(t, `{"name":"at once"}`, ann)
	webtest.Same(t, "without a grace", webtest.Want(t, 200, key("at once", "test", "null", shown), "Cache-Control", "no-store"),
		rotate(`{"keyId":"`+second.ID+`"}`, ann...))
	webtest.Same(t, "the old key", notFound, s.Call(t, "GET", "/auth/api-key/get?id="+second.ID, "", ann...))

	expired := s.CreateKey(t, `{"name":"expired","expiresIn":1}`, ann)
	pgtest.Exec(t, s.Store, `UPDATE api_keys SET created_at = now() - interval '1 hour', expires_at = now() - interval '1 minute' WHERE id = $1`, expired.ID)
	webtest.Same(t, "expired", webtest.Refused(t, 409, "KEY_EXPIRED", "The key has expired; create a new one."), rotate(`{"keyId":"`+expired.ID+`"}`, ann...))
}
