package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
)

func TestUpdateOrigins(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, key := keyOf(t, s)
	_, stranger := keyOf(t, s)
	same(t, "none", want(t, 200, `{"origins":[]}`), s.call(t, "GET", "/v2/origins", "", key...))
	for _, step := range []struct{ body, now string }{
		{`{"origins":["https://b.example","HTTPS://A.example:443","https://b.example"]}`, `{"origins":["https://a.example","https://b.example"]}`},
		{`{"origins":["https://a.example","https://b.example"]}`, `{"origins":["https://a.example","https://b.example"]}`}, // nothing
		{`{"origins":["http://localhost:3000"]}`, `{"origins":["http://localhost:3000"]}`},
		{`{"origins":[]}`, `{"origins":[]}`},
	} {
		same(t, step.body, want(t, 200, step.now), s.call(t, "PATCH", "/v2/origins", step.body, key...))
		same(t, step.body, want(t, 200, step.now), s.call(t, "GET", "/v2/origins", "", key...))
	}
	same(t, "another account", want(t, 200, `{"origins":[]}`), s.call(t, "GET", "/v2/origins", "", stranger...))
	// What a key does is one entry an hour, which counts.
	log := pgtest.LookUp[string](t, s.store, `SELECT concat_ws('|', key_name, detail, last_detail, repeats) FROM audit_log WHERE action = 'origins_changed'`)
	if diff := cmp.Diff("key|https://a.example https://b.example|no origins|2", log); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

func TestUpdateOrigins_Invalid(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, key := keyOf(t, s)
	for body, want := range map[string]answer{
		`{}`:                               invalid(t, "/origins", "is required"),
		`{"origins":null}`:                 invalid(t, "/origins", "must not be null"),
		`{"origins":"https://a.example"}`:  invalid(t, "/origins", "must not be a JSON string"),
		`{"origins":[],"environment":"a"}`: invalid(t, "/environment", "is not a known field"),
		`{"origins":["*"]}`: invalid(t, "/origins",
			`must be origins such as https://app.example.com or http://localhost:3000, without a path, not "*"`),
		`{"origins":["https://a` + strings.Repeat(`.example","https://b`, 20) + `.example.org"]}`: want(t, 200,
			`{"origins":["https://a.example","https://b.example","https://b.example.org"]}`),
	} {
		same(t, body, want, s.call(t, "PATCH", "/v2/origins", body, key...))
	}
}
