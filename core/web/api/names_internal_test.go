package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Generators of clients declare a type for each component, operation and inline member, in one scope and some without regard to case. So every
// enum has a name of its own, as a component, and no name is used twice, whatever it is the name of.
func TestDocument_Names(t *testing.T) {
	t.Parallel()
	var document map[string]any
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	n := &names{t: t, places: map[string]string{}}
	components := document["components"].(map[string]any)
	for kind, named := range components {
		for name, component := range named.(map[string]any) {
			at := "/components/" + kind + "/" + name
			n.add(name, at)
			n.walk(name, at, component, kind == "schemas")
		}
	}
	for _, group := range []string{"paths", "webhooks"} {
		for path, item := range document[group].(map[string]any) {
			for method, operation := range item.(map[string]any) {
				operation, ok := operation.(map[string]any)
				if !ok {
					continue
				}
				at := fmt.Sprintf("/%s/%s/%s", group, path, method)
				name, _ := operation["operationId"].(string)
				n.add(name, at)
				n.walk(name, at, operation, false)
			}
		}
	}
	if len(n.places) < 300 {
		t.Errorf("only %d names were found", len(n.places))
	}
}

// names are the places of the names that a generator declares, by the name in lower case.
type names struct {
	t      *testing.T
	places map[string]string
}

func (n *names) add(name, at string) {
	lower := strings.ToLower(name)
	if other := n.places[lower]; other != "" && other != at {
		n.t.Errorf("%s is the name of %s and of %s: rename one", name, other, at)
	}
	n.places[lower] = at
}

// walk visits a part of the document. The members of a named schema that are no plain values get a type whose name is made of both: Webhook and
// types make WebhookTypes.
func (n *names) walk(name, at string, value any, named bool) {
	switch value := value.(type) {
	case []any:
		for i, member := range value {
			n.walk(name, fmt.Sprintf("%s/%d", at, i), member, false)
		}
	case map[string]any:
		if value["enum"] != nil && (!strings.HasPrefix(at, "/components/schemas/") || strings.Count(at, "/") != 3) {
			n.t.Errorf("%s: an enum in place: make it a schema of its own and refer to it", at)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			switch key {
			case "example", "examples", "enum", "const", "default", "properties":
			default:
				n.walk(name, at+"/"+key, value[key], false)
			}
		}
		properties, _ := value["properties"].(map[string]any)
		for member, schema := range properties {
			schema, derived, place := schema.(map[string]any), name+exported(member), at+"/properties/"+member
			if kind, _ := schema["type"].(string); named && schema["$ref"] == nil && (kind == "" || kind == "object" || schema["const"] != nil) {
				n.add(derived, place)
			}
			n.walk(derived, place, schema, named)
		}
	}
}

// exported is a name as a part of a longer one.
func exported(name string) string { return string(unicode.ToUpper(rune(name[0]))) + name[1:] }
