package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/web/webtest"
)

// A list is filtered by labels, of which an intent must have all, and shows them; so does each page.
func TestListTransfers_Labels(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := webtest.Keyed(uuid.New(), "test")
	for name, labels := range map[string]string{
		"one": `{"order":"42","customer":"cus_81"}`, "two": `{"order":"42"}`, "three": `{"order":"421","note":"\"order\":\"42\""}`, "four": `null`,
	} {
		_, location, _ := s.CreateTransfer(t, webtest.TransferBody, ann...)
		s.Call(t, "PATCH", location, `{"reference":"`+name+`","labels":`+labels+`}`, ann...)
	}
	list := func(query string) map[string]bool {
		t.Helper()
		found := map[string]bool{}
		rows, ok := s.Call(t, "GET", "/v2/transfers?"+query, "", ann...).Body.([]any)
		if !ok {
			t.Fatalf("%s is no list", query)
		}
		for _, row := range rows {
			found[row.(map[string]any)["reference"].(string)] = true
		}
		return found
	}
	for query, want := range map[string][]string{
		"label.order=42":                                    {"one", "two"},
		"label.order=42&limit=10":                           {"one", "two"},
		"label.customer=cus_81&label.order=42":              {"one"},
		"label.customer=cus_81&label.order=421":             {},
		"label.note=%22order%22%3A%2242%22":                 {"three"},
		"label.order=42&type=transfer&status=created":       {"one", "two"},
		"label.rder=42":                                     {},
		"label.order=4":                                     {},
		"label.order=42&updated-since=1970-01-01T00:00:00Z": {"one", "two"},
	} {
		got := list(query)
		for _, name := range want {
			if !got[name] {
				t.Errorf("%s lacks %s", query, name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	row, _ := s.Call(t, "GET", "/v2/transfers?label.note=%22order%22%3A%2242%22", "", ann...).Body.([]any)[0].(map[string]any)
	if labels, _ := row["labels"].(map[string]any); labels["order"] != "421" || len(labels) != 2 {
		t.Errorf("the summary has the labels %v", row["labels"])
	}
}
