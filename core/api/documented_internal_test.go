package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/api/docs"
)

// What is routed is documented, and what is documented is routed, here or by the gateway itself.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	routed := map[string]bool{"GET /health": true, "GET /v2/health": true, "GET /v2/openapi.json": true}
	s := &Server{}
	for pattern := range s.publicRoutes(func(h http.Handler) http.HandlerFunc { return h.ServeHTTP }) {
		routed[pattern] = true
	}
	for path, route := range s.sessionRoutes() {
		routed[route.method+" "+path] = true
	}
	delete(routed, "GET "+docs.StylePath) // part of a page

	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for path, item := range document.Paths {
		for method := range item {
			if method != "parameters" {
				documented[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	if diff := cmp.Diff(routed, documented); diff != "" {
		t.Errorf("(-routed +documented):\n%s", diff)
	}
}
