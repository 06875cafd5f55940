package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/feed"
	"intents.internal/core/web/auth"
	"intents.internal/core/web/docs"
	"intents.internal/pkg/wire"
)

// Objects in answers and in requests to webhooks may gain members, which a client that validates must not refuse; objects in other
// requests may not.
func TestDocument_AdditionalProperties(t *testing.T) {
	t.Parallel()
	var document map[string]any
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	requests, answers := 0, 0
	var walk func(at string, value any, request bool, seen map[string]bool)
	walk = func(at string, value any, request bool, seen map[string]bool) {
		if list, ok := value.([]any); ok {
			for n, member := range list {
				walk(fmt.Sprintf("%s/%d", at, n), member, request, seen)
			}
			return
		}
		object, _ := value.(map[string]any)
		if ref, ok := object["$ref"].(string); ok && !seen[ref] {
			seen[ref] = true
			var target any = document
			for name := range strings.SplitSeq(ref[len("#/"):], "/") {
				target = target.(map[string]any)[name]
			}
			walk(ref, target, request, seen)
		}
		if object["type"] == "object" && object["properties"] != nil {
			if closed := object["additionalProperties"] == false; closed != request {
				t.Errorf("%s: closed is %v, of a request is %v", at, closed, request)
			}
			if requests++; !request {
				requests, answers = requests-1, answers+1
			}
		}
		for name, member := range object {
			if name != "examples" && name != "example" {
				walk(at+"/"+name, member, request, seen)
			}
		}
	}
	paths, _ := document["paths"].(map[string]any)
	requestSchemas, answerSchemas := map[string]bool{}, map[string]bool{}
	for path, item := range paths {
		for method, operation := range item.(map[string]any) {
			if operation, ok := operation.(map[string]any); ok {
				walk(method+" "+path+" request", operation["requestBody"], true, requestSchemas)
				walk(method+" "+path+" answer", operation["responses"], false, answerSchemas)
			}
		}
	}
	webhooks, _ := document["webhooks"].(map[string]any)
	for name, item := range webhooks {
		walk("webhook "+name, item, false, answerSchemas)
	}
	if requests < 10 || answers < 30 {
		t.Errorf("only %d objects of requests and %d of answers were found", requests, answers)
	}
}

// Every type of event that there is has an entry and a place in the lists of types, and no other.
func TestDocument_EventTypes(t *testing.T) {
	t.Parallel()
	type list struct{ Enum []feed.Type }
	var document struct {
		Webhooks   map[feed.Type]json.RawMessage
		Components struct {
			Schemas struct{ EventType list }
		}
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	for what, lists := range map[string]struct{ want, got []feed.Type }{
		"webhooks":  {append(feed.Types(), feed.TypeWebhookTest), slices.Collect(maps.Keys(document.Webhooks))},
		"EventType": {feed.Types(), document.Components.Schemas.EventType.Enum},
	} {
		slices.Sort(lists.want)
		slices.Sort(lists.got)
		if diff := cmp.Diff(lists.want, lists.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// What is routed is documented, and what is documented is routed, here or by the gateway itself.
func TestDocument_Routes(t *testing.T) {
	t.Parallel()
	routed := map[string]bool{"GET /health": true, "GET /v2/health": true, "GET /v2/openapi.json": true}
	for _, r := range append(New(Config{}).Routes(), auth.New(auth.Config{}).Routes()...) {
		routed[r.Pattern] = true
	}
	delete(routed, patternIndex)
	routed["GET /"] = true
	for _, pattern := range []string{patternDocsPages, "GET " + docs.LLMsPath} {
		delete(routed, pattern) // documentation itself
	}

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
	shared := map[string]bool{}
	for _, path := range wire.Paths {
		for _, method := range path.Methods {
			shared[method+" "+path.Pattern] = true
		}
	}
	if diff := cmp.Diff(shared, documented); diff != "" {
		t.Errorf("(-wire.Paths +documented):\n%s", diff)
	}
}
