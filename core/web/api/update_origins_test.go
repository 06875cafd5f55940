package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestUpdateOrigins(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, key := keyOf(t, s)
	_, stranger := keyOf(t, s)
	webtest.Same(t, "none", webtest.Want(t, 200, `{"origins":[]}`), s.Call(t, "GET", "/v2/origins", "", key...))
	for _, step := range []struct{ body, now string }{
		{`{"origins":["https://b.example","HTTPS://A.example:443","https://b.example"]}`, `{"origins":["https://a.example","https://b.example"]}`},
		{`{"origins":["https://a.example","https://b.example"]}`, `{"origins":["https://a.example","https://b.example"]}`}, // nothing
		{`{"origins":["http://localhost:3000"]}`, `{"origins":["http://localhost:3000"]}`},
		{`{"origins":[]}`, `{"origins":[]}`},
	} {
		webtest.Same(t, step.body, webtest.Want(t, 200, step.now), s.Call(t, "PATCH", "/v2/origins", step.body, key...))
		webtest.Same(t, step.body, webtest.Want(t, 200, step.now), s.Call(t, "GET", "/v2/origins", "", key...))
	}
	webtest.Same(t, "another account", webtest.Want(t, 200, `{"origins":[]}`), s.Call(t, "GET", "/v2/origins", "", stranger...))
	// What a key does is one entry an hour, which counts.
	log := pgtest.LookUp[string](t, s.Store, `SELECT concat_ws('|', key_name, detail, last_detail, repeats) FROM audit_log WHERE action = 'origins_changed'`)
	if diff := cmp.Diff("key|https://a.example https://b.example|no origins|2", log); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

func TestUpdateOrigins_Invalid(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, key := keyOf(t, s)
	for body, want := range map[string]webtest.Answer{
		`{}`:                               webtest.Invalid(t, "/origins", "is required"),
		`{"origins":null}`:                 webtest.Invalid(t, "/origins", "must not be null"),
		`{"origins":"https://a.example"}`:  webtest.Invalid(t, "/origins", "must not be a JSON string"),
		`{"origins":[],"environment":"a"}`: webtest.Invalid(t, "/environment", "is not a known field"),
		`{"origins":["*"]}`: webtest.Invalid(t, "/origins",
			`must be origins such as https://app.example.com or http://localhost:3000, without a path, not "*"`),
		`{"origins":["https://a` + strings.Repeat(`.example","https://b`, 20) + `.example.org"]}`: webtest.Want(t, 200,
			`{"origins":["https://a.example","https://b.example","https://b.example.org"]}`),
	} {
		webtest.Same(t, body, want, s.Call(t, "PATCH", "/v2/origins", body, key...))
	}
}
