package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/web/webtest"
)

// schema is the part of a JSON Schema that the walks read.
type schema struct {
	Ref              string `json:"$ref"`
	Type             any
	Properties       map[string]schema
	OneOf            []schema
	Minimum, Maximum *float64
}

func (s schema) has(kind string) bool {
	kinds, _ := s.Type.([]any)
	return s.Type == kind || slices.Contains(kinds, any(kind))
}

// requestOperation is what the walks read of an operation.
type requestOperation struct {
	Parameters  []parameter
	RequestBody *struct {
		Content map[string]struct{ Schema schema }
	}
}

type parameter struct {
	Ref    string `json:"$ref"`
	Name   string
	In     string
	Schema schema
}

// document is openapi.json with its references at hand.
type document struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
	}
}

func readDocument(t *testing.T) *document {
	t.Helper()
	text, err := os.ReadFile("api/openapi.json")
	d := &document{}
	if err == nil {
		err = json.Unmarshal(text, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *document) schema(s schema) schema {
	if s.Ref != "" {
		return d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// each calls visit for every operation.
func (d *document) each(t *testing.T, visit func(method, path string, o requestOperation)) {
	t.Helper()
	for path, item := range d.Paths {
		for method, text := range item {
			if method == "parameters" {
				continue
			}
			var o requestOperation
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			visit(strings.ToUpper(method), path, o)
		}
	}
}

// members calls visit for every member of a request's schema, at its JSON Pointer.
func (d *document) members(at string, s schema, visit func(at string, s schema)) {
	s = d.schema(s)
	for _, alternative := range s.OneOf {
		d.members(at, alternative, visit)
	}
	for name, member := range s.Properties {
		member = d.schema(member)
		visit(at+"/"+name, member)
		d.members(at+"/"+name, member, visit)
	}
}

// walker sends requests to every operation, with a key or a session as its path wants.
type walker struct {
	*webtest.Service
	key, session []string
	// transfer and batch are the ids of an intent and of a batch of the key.
	transfer, batch string
}

func newWalker(t *testing.T) *walker {
	t.Helper()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, key...)
	response := s.Send(t, "POST", "/v2/transfers/batch", `{"transfers":[`+webtest.TransferBody+`]}`, append(slices.Clip(key), "Idempotency-Key", "walk")...)
	webtest.ReadAll(t, response)
	return &walker{
		Service: s, key: key, session: s.SignUp(t, "ann@example.com"), transfer: strings.TrimPrefix(location, "/v2/transfers/"), batch: strings.TrimPrefix(response.Header.Get("Location"), "/v2/batches/"),
	}
}

// issue returns what the service has against the member or parameter of this name, empty for nothing.
func (w *walker) issue(t *testing.T, method, path, at, body string) string {
	t.Helper()
	headers := w.session
	if strings.HasPrefix(path, "/v2/") {
		headers = w.key
	}
	got := w.Call(t, method, path, body, headers...)
	object, _ := got.Body.(map[string]any)
	details, _ := object["details"].(map[string]any)
	issues, _ := details["issues"].([]any)
	for _, issue := range issues {
		if issue, ok := issue.(map[string]any); ok && issue["path"] == at {
			return fmt.Sprint(issue["message"])
		}
	}
	return ""
}

// member is a body that has only the member at a JSON Pointer.
func member(at, value string) string {
	names := strings.Split(at[1:], "/")
	for _, name := range slices.Backward(names) {
		value = fmt.Sprintf("{%q:%s}", name, value)
	}
	return value
}

// path puts the intent or the batch into a template, and for all else what does not exist.
func (w *walker) path(template string) string {
	id := uuid.NewString()
	if strings.HasPrefix(template, "/v2/transfers/") {
		id = w.transfer
	}
	if strings.HasPrefix(template, "/v2/batches/") {
		id = w.batch
	}
	return strings.NewReplacer("{id}", id, "{eventId}", "evt_"+uuid.NewString()).Replace(template)
}

// Null is taken where the schema of a member has it, and is an issue of that member everywhere else.
func TestRequests_Null(t *testing.T) {
	t.Parallel()
	d, w, members := readDocument(t), newWalker(t), 0
	d.each(t, func(method, path string, o requestOperation) {
		if o.RequestBody == nil {
			return
		}
		d.members("", o.RequestBody.Content["application/json"].Schema, func(at string, s schema) {
			members++
			if issue := w.issue(t, method, w.path(path), at, member(at, "null")); (issue == "") != s.has("null") {
				t.Errorf("%s %s %s: null: the schema has it is %v, the issue is %q", method, path, at, s.has("null"), issue)
			}
		})
	})
	if members < 100 {
		t.Errorf("only %d members were found", members)
	}
}

// A number of a request has bounds in the document. It is taken in every form of JSON whose value is whole, and its issue beyond a bound
// names the bound.
func TestRequests_Numbers(t *testing.T) {
	t.Parallel()
	d, w, numbers := readDocument(t), newWalker(t), 0
	bound := func(s schema, what string) (least, most int64, ok bool) {
		if s.Minimum == nil || s.Maximum == nil {
			t.Errorf("%s: has a minimum is %v, a maximum %v", what, s.Minimum != nil, s.Maximum != nil)
			return 0, 0, false
		}
		return int64(*s.Minimum), int64(*s.Maximum), true
	}
	d.each(t, func(method, path string, o requestOperation) {
		if o.RequestBody != nil {
			d.members("", o.RequestBody.Content["application/json"].Schema, func(at string, s schema) {
				if !s.has("integer") {
					return
				}
				least, most, ok := bound(s, path+" "+at)
				if !ok {
					return
				}
				numbers++
				for _, number := range []string{strconv.FormatInt(least, 10), fmt.Sprintf("%d.0", most), fmt.Sprintf("%de0", most), "1e3", "0.5e1"} {
					if issue := w.issue(t, method, w.path(path), at, member(at, number)); issue != "" {
						t.Errorf("%s %s %s: %s %s", method, path, at, number, issue)
					}
				}
				for _, number := range []string{strconv.FormatInt(most+1, 10), "1e30", "1e999999999999999999999"} {
					if issue := w.issue(t, method, w.path(path), at, member(at, number)); !strings.Contains(issue, strconv.FormatInt(most, 10)) {
						t.Errorf("%s %s %s: %s %q", method, path, at, number, issue)
					}
				}
				for _, number := range []string{"0.5", "1e-3", "1e-999999999999999999999"} {
					if issue := w.issue(t, method, w.path(path), at, member(at, number)); issue != "must be a whole number" {
						t.Errorf("%s %s %s: %s %q", method, path, at, number, issue)
					}
				}
			})
		}
		for _, p := range o.Parameters {
			if p.Ref != "" {
				p = d.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
			}
			if p.In != "query" || !p.Schema.has("integer") {
				continue
			}
			least, most, ok := bound(p.Schema, path+" "+p.Name)
			if !ok {
				continue
			}
			numbers++
			for _, number := range []string{strconv.FormatInt(most+1, 10), "75173702413061728", "99999999999999999999", strconv.FormatInt(least-1, 10)} {
				if issue := w.issue(t, method, w.path(path)+"?"+p.Name+"="+number, p.Name, ""); !strings.Contains(issue, fmt.Sprintf("from %d to %d", least, most)) {
					t.Errorf("%s %s %s=%s: %q", method, path, p.Name, number, issue)
				}
			}
		}
	})
	if numbers < 12 {
		t.Errorf("only %d numbers were found", numbers)
	}
}
