// Package openapitest holds responses, and requests to webhooks, to the OpenAPI document, for tests of every module.
package openapitest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"intents.internal/pkg/wire"
)

// Contract holds responses to openapi.json. OpenAPI 3.1's schemas are JSON Schema 2020-12, so that a validator of those
// is all it takes. It may be used by several goroutines.
type Contract struct {
	document map[string]any

	// added are the headers that gateways add, where core is asked itself.
	added []string

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

// Read reads the document. Where core is asked itself, responses lack the headers that a gateway would have added, which are named here.
func Read(file string, added ...string) (*Contract, error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	document, err := jsonschema.UnmarshalJSON(text)
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
	return &Contract{document: root, added: added, compiler: compiler, schemas: map[string]*jsonschema.Schema{}}, nil
}

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

// Faults tells how a response with this body differs from what the document says of it.
func (c *Contract) Faults(request *http.Request, response *http.Response, body []byte) []string {
	body, err := decompressed(response.Header.Get("Content-Encoding"), body)
	if err != nil {
		return []string{err.Error()}
	}
	at, ok := c.operation(request.Method, request.URL.Path)
	if !ok {
		return c.refusalFaults(response, body)
	}
	documented, status := c.resolve(at, "responses"), strconv.Itoa(response.StatusCode)
	switch {
	case c.value(documented, status) != nil:
	case slices.Contains(early, response.StatusCode):
		status = "default"
	default:
		return []string{"the status is not documented"}
	}
	described := c.resolve(documented, status)
	faults := c.headerFaults(described, response.Header)
	if request.Method == http.MethodHead {
		return faults
	}
	return append(faults, c.bodyFaults(described, response.Header, body)...)
}

// early are the statuses with which the gateway refuses a message before it looks for an operation: the default response.
var early = []int{405, 408, 417, 431, 505}

// refusalFaults judges the answer to an operation that does not exist.
func (c *Contract) refusalFaults(response *http.Response, body []byte) []string {
	if !slices.Contains([]int{400, 401, 403, 404, 405}, response.StatusCode) {
		return []string{"there is no such operation"}
	}
	if response.StatusCode == http.StatusMethodNotAllowed {
		refused := c.resolve("/components/responses", "OtherRefusal")
		return append(c.headerFaults(refused, response.Header), c.bodyFaults(refused, response.Header, body)...)
	}
	if response.Header.Get("X-Request-Id") == "" {
		return []string{"there is no X-Request-Id"}
	}
	if control := response.Header.Get("Cache-Control"); control != "no-store" {
		return []string{fmt.Sprintf("Cache-Control is %q", control)}
	}
	return c.SchemaFaults("Error", body)
}

// alwaysAllowed are headers that HTTP itself explains.
var alwaysAllowed = []string{"Connection", "Content-Length", "Content-Type", "Date", "Strict-Transport-Security"}

func (c *Contract) headerFaults(described string, sent http.Header) (faults []string) {
	headers, _ := c.value(described, "headers").(map[string]any)
	known := slices.Clone(alwaysAllowed)
	if len(c.added) > 0 { // core is asked itself, and gateways do not forward it
		known = append(known, wire.HeaderCore)
	}
	for name := range headers {
		known = append(known, http.CanonicalHeaderKey(name))
		at := c.resolve(described+"/headers", name)
		values := sent.Values(name)
		if name == "Vary" && len(values) > 1 {
			values = []string{strings.Join(values, ", ")} // a list may be sent in several lines (RFC 9110 section 5.3)
		}
		switch required, _ := c.value(at, "required").(bool); {
		case len(values) == 0 && required && !slices.Contains(c.added, name):
			faults = append(faults, "there is no "+name)
		case len(values) > 1 && name != "Set-Cookie": // one field a cookie (RFC 9110 section 5.3)
			faults = append(faults, fmt.Sprintf("%s is sent %d times", name, len(values)))
		}
		for _, value := range values {
			faults = append(faults, c.headerMismatch(at, name, value)...)
		}
	}
	for name := range sent {
		if !slices.Contains(known, name) {
			faults = append(faults, name+" is not documented")
		}
	}
	return faults
}

func (c *Contract) headerMismatch(at, name, value string) []string {
	text, err := json.Marshal(value)
	if kind, _ := c.value(at+"/schema", "type").(string); kind == "integer" {
		text = []byte(value)
	}
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for _, fault := range c.mismatch(at+"/schema", text) {
		faults = append(faults, name+": "+fault)
	}
	return faults
}

func (c *Contract) bodyFaults(described string, sent http.Header, body []byte) []string {
	content, _ := c.value(described, "content").(map[string]any)
	media := sent.Get("Content-Type")
	if len(content) == 0 {
		if len(body) > 0 || media != "" {
			return []string{"there is a body where none is documented"}
		}
		return nil
	}
	media, _, _ = strings.Cut(media, ";")
	if content[media] == nil {
		return []string{fmt.Sprintf("the media type %q is not documented", media)}
	}
	if media != "application/json" {
		return nil
	}
	return c.mismatch(described+"/content/"+escape(media)+"/schema", body)
}

// DeliveryFaults tells how a request to a webhook differs from what the document says of events of this type.
func (c *Contract) DeliveryFaults(kind string, header http.Header, body []byte) (faults []string) {
	at := "/webhooks/" + escape(kind) + "/post"
	parameters, _ := c.value(at, "parameters").([]any)
	if len(parameters) < 3 {
		return []string{fmt.Sprintf("there is no entry with headers for %s", kind)}
	}
	for n := range parameters {
		described := fmt.Sprintf("%s/parameters/%d", at, n)
		name, _ := c.value(described, "name").(string)
		faults = append(faults, c.headerMismatch(described, name, header.Get(name))...)
	}
	return append(faults, c.mismatch(at+"/requestBody/content/application~1json/schema", body)...)
}

// SchemaFaults tells how JSON differs from the document's schema of this name.
func (c *Contract) SchemaFaults(name string, text []byte) []string {
	return c.mismatch("/components/schemas/"+name, text)
}

// mismatch holds JSON to the schema at a place of the document.
func (c *Contract) mismatch(at string, text []byte) []string {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return []string{fmt.Sprintf("not JSON: %q", text)}
	}
	schema, err := c.schema(at)
	if err == nil {
		err = schema.Validate(value)
	}
	if err == nil {
		return nil
	}
	return []string{fmt.Sprintf("%v: %.500s", err, text)}
}

func decompressed(coding string, body []byte) ([]byte, error) {
	switch coding {
	case "":
		return body, nil
	case "gzip":
		reader, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(reader)
	case "zstd":
		reader, err := zstd.NewReader(nil)
		if err != nil {
			return nil, err
		}
		defer reader.Close()
		return reader.DecodeAll(body, nil)
	default:
		return nil, fmt.Errorf("unknown Content-Encoding %q", coding)
	}
}

func (c *Contract) schema(at string) (*jsonschema.Schema, error) {
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

// Documents reports whether the document describes the operation of a request.
func (c *Contract) Documents(request *http.Request) bool {
	_, found := c.operation(request.Method, request.URL.Path)
	return found
}

// operation finds where the document describes a request. HEAD is described with GET where both are to be had.
func (c *Contract) operation(method, path string) (at string, found bool) {
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
func (c *Contract) resolve(at, name string) string {
	at += "/" + escape(name)
	if target, ok := c.value(at, "$ref").(string); ok {
		return strings.TrimPrefix(target, "#")
	}
	return at
}

// value reads a member of the object at a JSON Pointer, nil where there is none.
func (c *Contract) value(pointer, name string) any {
	var current any = c.document
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if list, ok := current.([]any); ok {
			n, _ := strconv.Atoi(token) // the pointers into lists are made from their indexes
			current = list[n]
			continue
		}
		object, _ := current.(map[string]any)
		current = object[unescape.Replace(token)]
	}
	object, _ := current.(map[string]any)
	return object[name]
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func escape(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }
