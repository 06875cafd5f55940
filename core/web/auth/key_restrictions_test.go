package auth_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/web/webtest"
)

// restrictedKey is an unexpiring test key with these scopes, networks and permissions, as its owner sees it.
func restrictedKey(scopes, networks, permissions, shown string) string {
	return strings.Replace(key("ci", "test", "null", shown), unrestricted,
		fmt.Sprintf(`"scopes":%s,"networks":%s,"permissions":%s`, scopes, networks, permissions), 1)
}

const badNetwork = "must be addresses or networks such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32, not "

func TestKeyRestrictions(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	const scopeRule = "must be one or more of intents:read, intents:write, webhooks"
	all := func(shown string) string { return key("ci", "test", "null", shown) }
	for fields, c := range map[string]struct {
		made func(shown string) string
		// invalid is a field and what is wrong with it.
		invalid []string
	}{
		`"scopes":["webhooks","intents:read"]`: {made: func(shown string) string {
			return restrictedKey(`["intents:read","webhooks"]`, `[]`, `{"intents":["read"],"webhooks":["read","write"]}`, shown)
		}},
		`"scopes":["intents:write"],"networks":["2001:db8::1/32","10.1.2.3/8","10.0.0.0/8","::ffff:192.0.2.1"]`: {made: func(shown string) string {
			return restrictedKey(`["intents:write"]`, `["10.0.0.0/8","192.0.2.1/32","2001:db8::/32"]`, `{"intents":["write"]}`, shown)
		}},
		`"scopes":["intents:read","intents:write","webhooks"],"networks":[]`: {made: all},

		`"scopes":[]`:                        {invalid: []string{"/scopes", scopeRule}},
		`"scopes":[null]`:                    {invalid: []string{"/scopes/0", "must not be null"}},
		`"scopes":"webhooks"`:                {invalid: []string{"/scopes", "must not be a JSON string"}},
		`"networks":["10.0.0.0/33"]`:         {invalid: []string{"/networks", badNetwork + `"10.0.0.0/33"`}},
		`"networks":[7]`:                     {invalid: []string{"/networks/0", "must not be a JSON number"}},
		`"permissions":{"intents":["read"]}`: {invalid: []string{"/permissions", "is not a known field"}},
	} {
		create := `{"name":"ci",` + fields + `}`
		if c.made == nil {
			webtest.Same(t, create, webtest.Invalid(t, c.invalid...), s.Call(t, "POST", "/auth/api-key/create", create, ann...))
		} else {
			webtest.Same(t, create, webtest.Want(t, 200, c.made(shown), "Cache-Control", "no-store"), s.Call(t, "POST", "/auth/api-key/create", create, ann...))
		}
		id := s.CreateKey(t, `{"name":"ci"}`, ann).ID
		update := `{"keyId":"` + id + `",` + fields + `}`
		if c.made == nil {
			webtest.Same(t, update, webtest.Invalid(t, c.invalid...), s.Call(t, "POST", "/auth/api-key/update", update, ann...))
			continue
		}
		webtest.Same(t, update, webtest.Want(t, 200, c.made("")), s.Call(t, "POST", "/auth/api-key/update", update, ann...))
		webtest.Same(t, "get "+fields, webtest.Want(t, 200, c.made(""), "Cache-Control", "no-store"), s.Call(t, "GET", "/auth/api-key/get?id="+id, "", ann...))
		webtest.Same(t, "rotate "+fields, webtest.Want(t, 200, c.made(shown), "Cache-Control", "no-store"),
			s.Call(t, "POST", "/auth/api-key/rotate", `{"keyId":"`+id+`"}`, ann...))
	}
}

// A gateway is told the restrictions that a key has.
func TestVerifyKey_Restrictions(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	for fields, want := range map[string]string{
		`"name":"free"`:                           `null null`,
		`"name":"a","networks":[]`:                `null null`,
		`"name":"b","scopes":["webhooks"]`:        `["webhooks"] null`,
		`"name":"c","networks":["10.1.2.3/8"]`:    `null ["10.0.0.0/8"]`,
		`"name":"d","networks":["::1","0.0.0.0"]`: `null ["0.0.0.0/32","::1/128"]`,
	} {
		request := `{"hash":"` + webtest.HashOf(s.CreateKey(t, `{`+fields+`}`, ann).Key) + `"}`
		response := s.Send(t, "POST", "/internal/keys/verify", request)
		var got struct{ Scopes, Networks json.RawMessage }
		if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &got); err != nil || response.StatusCode != 200 {
			t.Fatalf("%s: %d, %v", fields, response.StatusCode, err)
		}
		text := orNull(got.Scopes) + " " + orNull(got.Networks)
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fields, diff)
		}
	}
}

func orNull(raw json.RawMessage) string {
	if raw == nil {
		return "null"
	}
	return string(raw)
}
