package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"intents.internal/core/web/webtest"
)

func TestGetKey(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	id := s.CreateKey(t, `{"name":"ci","environment":"live","expiresIn":60}`, ann).ID
	get := func(query string, header ...string) webtest.Answer {
		return s.Call(t, "GET", "/auth/api-key/get"+query, "", header...)
	}
	notFound := webtest.Refused(t, 404, "NOT_FOUND", "The account has no such key.")
	webtest.Same(t, "mine", webtest.Want(t, 200, key("ci", "live", `"<time>"`, ""), "Cache-Control", "no-store"), get("?id="+id, ann...))
	webtest.Same(t, "another's", notFound, get("?id="+id, bob...))
	webtest.Same(t, "no id of a key", notFound, get("?id="+strings.ReplaceAll(id, "-", ""), ann...))
	webtest.Same(t, "no id", notFound, get("", ann...))
	webtest.Same(t, "two ids", webtest.Invalid(t, "id", "is given twice"), get("?id="+id+"&id="+id, ann...))
	webtest.Same(t, "another parameter", webtest.Invalid(t, "userId", "is not a known parameter"), get("?id="+id+"&userId=x", ann...))
}

func TestListKeys_Pages(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	s.CreateKey(t, `{"name":"another's"}`, bob)
	for _, request := range []string{`{"name":"b"}`, `{"name":"c","expiresIn":60}`, `{"name":"a","expiresIn":3600}`} {
		s.CreateKey(t, request, ann)
	}
	keys := map[string]string{"a": key("a", "test", `"<time>"`, ""), "b": key("b", "test", "null", ""), "c": key("c", "test", `"<time>"`, "")}
	page := func(names, asked string) webtest.Answer {
		listed := []string{}
		for name := range strings.FieldsSeq(names) {
			listed = append(listed, keys[name])
		}
		return webtest.Want(t, 200, fmt.Sprintf(`{"apiKeys":[%s],"total":3%s}`, strings.Join(listed, ","), asked), "Cache-Control", "no-store")
	}
	const number, by, direction = "must be a whole number from 0 to 2147483647", "must be name, createdAt, updatedAt or expiresAt", "must be asc or desc"
	for query, expected := range map[string]webtest.Answer{
		"":                                    page("a c b", ""),
		"?limit=2":                            page("a c", `,"limit":2`),
		"?offset=1":                           page("c b", `,"offset":1`),
		"?limit=1&offset=1":                   page("c", `,"limit":1,"offset":1`),
		"?limit=0":                            page("", `,"limit":0`),
		"?limit=100&offset=3":                 page("", `,"limit":100,"offset":3`),
		"?sortBy=name":                        page("a b c", ""),
		"?sortBy=name&sortDirection=desc":     page("c b a", ""),
		"?sortBy=createdAt":                   page("b c a", ""),
		"?sortBy=updatedAt&sortDirection=asc": page("b c a", ""),
		"?sortBy=expiresAt":                   page("c a b", ""),
		"?sortBy=expiresAt&limit=1":           page("c", `,"limit":1`),
		"?limit=-1&offset=x":                  webtest.Invalid(t, "limit", number, "offset", number),
		"?limit=":                             webtest.Invalid(t, "limit", number),
		"?limit=4294967296":                   webtest.Invalid(t, "limit", number),
		"?sortBy=hash&sortDirection=up":       webtest.Invalid(t, "sortBy", by, "sortDirection", direction),
		"?userId=x":                           webtest.Invalid(t, "userId", "is not a known parameter"),
	} {
		webtest.Same(t, query, expected, s.Call(t, "GET", "/auth/api-key/list"+query, "", ann...))
	}
}
