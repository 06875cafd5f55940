package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestGetKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := signUp(t, s, "ann@example.com"), signUp(t, s, "bob@example.com")
	id := createKey(t, s, `{"name":"ci","environment":"live","expiresIn":60}`, ann).ID
	get := func(query string, header ...string) answer {
		return s.call(t, "GET", "/auth/api-key/get"+query, "", header...)
	}
	notFound := refused(t, 404, "NOT_FOUND", "The account has no such key.")
	same(t, "mine", want(t, 200, key("ci", "live", `"<time>"`, ""), "Cache-Control", "no-store"), get("?id="+id, ann...))
	same(t, "another's", notFound, get("?id="+id, bob...))
	same(t, "no id of a key", notFound, get("?id="+strings.ReplaceAll(id, "-", ""), ann...))
	same(t, "no id", notFound, get("", ann...))
	same(t, "two ids", invalid(t, "id", "is given twice"), get("?id="+id+"&id="+id, ann...))
	same(t, "another parameter", invalid(t, "userId", "is not a known parameter"), get("?id="+id+"&userId=x", ann...))
}

func TestListKeys_Pages(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := signUp(t, s, "ann@example.com"), signUp(t, s, "bob@example.com")
	createKey(t, s, `{"name":"another's"}`, bob)
	for _, request := range []string{`{"name":"b"}`, `{"name":"c","expiresIn":60}`, `{"name":"a","expiresIn":3600}`} {
		createKey(t, s, request, ann)
	}
	keys := map[string]string{"a": key("a", "test", `"<time>"`, ""), "b": key("b", "test", "null", ""), "c": key("c", "test", `"<time>"`, "")}
	page := func(names, asked string) answer {
		listed := []string{}
		for name := range strings.FieldsSeq(names) {
			listed = append(listed, keys[name])
		}
		return want(t, 200, fmt.Sprintf(`{"apiKeys":[%s],"total":3%s}`, strings.Join(listed, ","), asked), "Cache-Control", "no-store")
	}
	const number, by, direction = "must be a whole number from 0 to 2147483647", "must be name, createdAt, updatedAt or expiresAt", "must be asc or desc"
	for query, expected := range map[string]answer{
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
		"?limit=-1&offset=x":                  invalid(t, "limit", number, "offset", number),
		"?limit=":                             invalid(t, "limit", number),
		"?limit=4294967296":                   invalid(t, "limit", number),
		"?sortBy=hash&sortDirection=up":       invalid(t, "sortBy", by, "sortDirection", direction),
		"?userId=x":                           invalid(t, "userId", "is not a known parameter"),
	} {
		same(t, query, expected, s.call(t, "GET", "/auth/api-key/list"+query, "", ann...))
	}
}
