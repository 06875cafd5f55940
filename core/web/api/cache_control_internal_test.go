package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// No documented response, whatever its operation and status, leaves it to a cache whether to keep it: it says no-store, or private with a tag
// and a Vary on the key, or public where no credential is asked for. The tests hold each response that they read to this document.
func TestDocument_CacheControl(t *testing.T) {
	t.Parallel()
	type header struct {
		Ref      string `json:"$ref"`
		Required bool
		Schema   struct{ Const string }
	}
	type response struct {
		Ref     string `json:"$ref"`
		Headers map[string]header
	}
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Responses map[string]response
			Headers   map[string]header
		}
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	components := document.Components
	field := func(r response, name string) string {
		if r.Ref != "" {
			r = components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
		}
		h := r.Headers[name]
		if h.Ref != "" {
			h = components.Headers[strings.TrimPrefix(h.Ref, "#/components/headers/")]
		}
		if !h.Required {
			return ""
		}
		return h.Schema.Const
	}
	found := map[string]int{}
	for path, item := range document.Paths {
		for method, text := range item {
			if method == "parameters" {
				continue
			}
			var operation struct {
				Security  []map[string]any
				Responses map[string]response
			}
			if err := json.Unmarshal(text, &operation); err != nil {
				t.Fatal(err)
			}
			for status, r := range operation.Responses {
				control, vary, public := field(r, "Cache-Control"), field(r, "Vary"), len(operation.Security) == 0
				found[control]++
				private := control == "private, no-cache" && strings.Contains(vary, "x-api-key")
				if control != "no-store" && !private && (!public || !strings.HasPrefix(control, "public, ")) {
					t.Errorf("%s %s, %s: Cache-Control %q, Vary %q", method, path, status, control, vary)
				}
			}
		}
	}
	if found["no-store"] < 400 || found["private, no-cache"] != 6 || found["public, max-age=300"] < 3 {
		t.Errorf("responses by Cache-Control: %v", found)
	}
}
