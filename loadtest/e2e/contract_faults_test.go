package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// faults tells how a response differs from what the document says of it.
func (c *contract) faults(request *http.Request, response *http.Response, body []byte) []string {
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
func (c *contract) refusalFaults(response *http.Response, body []byte) []string {
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
	return c.mismatch("/components/schemas/Error", body)
}

// alwaysAllowed are headers that HTTP itself explains.
var alwaysAllowed = []string{"Connection", "Content-Length", "Content-Type", "Date"}

func (c *contract) headerFaults(described string, sent http.Header) (faults []string) {
	headers, _ := c.value(described, "headers").(map[string]any)
	known := slices.Clone(alwaysAllowed)
	for name := range headers {
		known = append(known, http.CanonicalHeaderKey(name))
		at := c.resolve(described+"/headers", name)
		values := sent.Values(name)
		switch required, _ := c.value(at, "required").(bool); {
		case len(values) == 0 && required:
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

func (c *contract) headerMismatch(at, name, value string) []string {
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

func (c *contract) bodyFaults(described string, sent http.Header, body []byte) []string {
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

// mismatch holds JSON to the schema at a place of the document.
func (c *contract) mismatch(at string, text []byte) []string {
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
