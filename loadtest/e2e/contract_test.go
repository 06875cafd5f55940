package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const openAPIFile = "../../core/web/api/openapi.json"

// contract holds responses to openapi.json. OpenAPI 3.1's schemas are JSON Schema 2020-12, so that a validator of those
// is all it takes.
type contract struct {
	document map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

// agreed is the contract that every client of this package holds the service to.
var agreed = sync.OnceValues(func() (*contract, error) {
	file, err := os.Open(openAPIFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	document, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return nil, err
	}
	closeObjects(document)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", document); err != nil {
		return nil, err
	}
	root, _ := document.(map[string]any)
	return &contract{document: root, compiler: compiler, schemas: map[string]*jsonschema.Schema{}}, nil
})

// closeObjects makes the tests stricter than clients should be: a member that the document does not know is a fault here,
// save where it says that any may come. Objects inside an allOf are parts of one and stay open.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["type"] == "object" && s["properties"] != nil && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for name, member := range s {
			if name != "allOf" {
				closeObjects(member)
			}
		}
	case []any:
		for _, member := range s {
			closeObjects(member)
		}
	}
}

// checked is a transport that fails the test over every response that openapi.json does not describe.
type checked struct{ t *testing.T }

// connections are kept for as many clients as a test lets loose on one gateway.
var connections = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}

func (c checked) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := connections.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	held, err := agreed()
	if err != nil {
		return nil, err
	}
	for _, fault := range held.faults(request, response, body) {
		c.t.Errorf("%s %s answered %d against openapi.json: %s", request.Method, request.URL.RequestURI(), response.StatusCode, fault)
	}
	return response, nil
}

func (c *contract) schema(at string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.schemas[at]; known != nil {
		return known, nil
	}
	place := url.URL{Path: "openapi.json", Fragment: at}
	compiled, err := c.compiler.Compile(place.String())
	c.schemas[at] = compiled
	return compiled, err
}

// operation finds where the document describes a request. HEAD is described with GET where both are to be had.
func (c *contract) operation(method, path string) (at string, found bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	paths, _ := c.document["paths"].(map[string]any)
	for template := range paths {
		if at := "/paths/" + escape(template); matches(template, path) && c.value(at, strings.ToLower(method)) != nil {
			return at + "/" + strings.ToLower(method), true
		}
	}
	return "", false
}

func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{") && got != ""
	})
}

// resolve is the place of a member, and where that is a reference, what it refers to.
func (c *contract) resolve(at, name string) string {
	at += "/" + escape(name)
	if target, ok := c.value(at, "$ref").(string); ok {
		return strings.TrimPrefix(target, "#")
	}
	return at
}

// value reads a member of the object at a JSON Pointer, nil where there is none.
func (c *contract) value(pointer, name string) any {
	var current any = c.document
	for token := range strings.SplitSeq(pointer[1:], "/") {
		object, _ := current.(map[string]any)
		current = object[unescape.Replace(token)]
	}
	object, _ := current.(map[string]any)
	return object[name]
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func escape(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }
