package docs_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"intents.internal/core/web/docs"
)

func render(t *testing.T) (page string, openAPI []byte) {
	t.Helper()
	openAPI, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := docs.Render(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	return string(rendered), openAPI
}

func TestRender_EveryOperation(t *testing.T) {
	t.Parallel()
	page, openAPI := render(t)
	var document struct {
		Paths, Webhooks map[string]map[string]json.RawMessage
		Components      struct {
			Schemas, Responses map[string]any
		}
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Webhooks) == 0 {
		t.Error("the document has no webhooks")
	}
	wanted := []string{}
	maps.Copy(document.Paths, document.Webhooks) // paths begin with a slash, names of events do not
	for path, item := range document.Paths {
		for method, operation := range item {
			if method == "parameters" {
				continue
			}
			var named struct{ OperationID string }
			if err := json.Unmarshal(operation, &named); err != nil {
				t.Fatal(err)
			}
			method = strings.ToUpper(method)
			wanted = append(wanted, `<h3 id="`+named.OperationID+`">`, method+"</span> <code>"+path+"</code>", method+"</span> "+path+"</a>")
		}
	}
	for name := range document.Components.Schemas {
		wanted = append(wanted, `<h3 id="schema-`+name+`">`)
	}
	for name := range document.Components.Responses {
		wanted = append(wanted, `<h3 id="answer-`+name+`">`)
	}
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func TestRender_SelfContained(t *testing.T) {
	t.Parallel()
	page, _ := render(t)
	for _, forbidden := range []string{
		`(?i)<(script|style|iframe|object|embed|img|base|form)\b`, `(?i)\s(style|on\w+|srcset|action)\s*=`,
		`(?i)\b(src|href)="(//|[a-z]+:)`, `ZgotmplZ`, `<no value>`,
	} {
		if found := regexp.MustCompile(forbidden).FindString(page); found != "" {
			t.Errorf("the page has %q (%s)", found, forbidden)
		}
	}
	if found := regexp.MustCompile(`(?i)@import|url\(|https?:`).Find(docs.Style); found != nil {
		t.Errorf("the style sheet has %q", found)
	}
}

func TestRender_Anchors(t *testing.T) {
	t.Parallel()
	page, _ := render(t)
	ids := map[string]bool{}
	for _, match := range regexp.MustCompile(`\bid="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[match[1]] {
			t.Errorf("two elements have the id %q", match[1])
		}
		ids[match[1]] = true
	}
	for _, match := range regexp.MustCompile(`href="#([^"]+)"|aria-labelledby="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if name := match[1] + match[2]; !ids[name] {
			t.Errorf("nothing has the id %q", name)
		}
	}
}

func TestRender_ReferenceDescription(t *testing.T) {
	t.Parallel()
	page, err := docs.Render([]byte(`{"tags":[{"name":"a"}],"components":{"responses":{"No":{"description":"shared"}}},"paths":{"/a":{"get":{"tags":["a"],
		"responses":{"404":{"$ref":"#/components/responses/No","description":"its own"},"410":{"$ref":"#/components/responses/No"}}}}}}`))
	if err != nil || strings.Count(string(page), "its own") != 1 || strings.Count(string(page), "shared") != 2 {
		t.Errorf("%v: %s", err, page)
	}
}

func TestRender_AnswerAlternatives(t *testing.T) {
	t.Parallel()
	page, _ := render(t)
	if want := `<a href="#schema-CreatedBatch">CreatedBatch</a> or <a href="#schema-CreatedBatchSummary">CreatedBatchSummary</a>`; !strings.Contains(page, want) {
		t.Errorf("the page does not say %s", want)
	}
}

func TestRender_RequestAlternatives(t *testing.T) {
	t.Parallel()
	page, err := docs.Render([]byte(`{"tags":[{"name":"a"}],"components":{"schemas":{"One":{"properties":{"x":{}}},"Other":{"properties":{"y":{}}}}},
		"paths":{"/a":{"post":{"tags":["a"],"requestBody":{"content":{"application/json":{"schema":{
		"oneOf":[{"$ref":"#/components/schemas/One"},{"$ref":"#/components/schemas/Other"}]}}}}}}}}`))
	for _, want := range []string{
		`Body: <a href="#schema-One">One</a>`, `Or: <a href="#schema-Other">Other</a>`,
	} {
		if err != nil || strings.Count(string(page), want) != 1 {
			t.Errorf("%v: no %s in %s", err, want, page)
		}
	}
	for _, member := range []string{`<code>x</code>`, `<code>y</code>`} {
		if strings.Count(string(page), member) != 2 { // at the endpoint and among the objects
			t.Errorf("%s is not shown at the endpoint", member)
		}
	}
}

func TestRender_Code(t *testing.T) {
	t.Parallel()
	page, err := docs.Render([]byte("{\"info\":{\"description\":\"Before.\\n\\n```js\\nconst a = `<b>`\\n  + **c**\\n```\\n\\nAfter `d`.\"}}"))
	want := "<p>Before.</p>\n<pre tabindex=\"0\"><code>const a = `&lt;b&gt;`\n  + **c**</code></pre>\n<p>After <code>d</code>.</p>\n"
	if err != nil || !strings.Contains(string(page), want) {
		t.Errorf("%v: no %q in %.2000s", err, want, page)
	}
}

// A document that refers to what it does not have is a mistake to be found before it is served.
func TestRender_InvalidDocument(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `[]`, `{"paths":[]}`,
		`{"tags":[{"name":"a"}],"paths":{"/a":{"get":{"tags":["a"],"parameters":[{"$ref":"#/components/parameters/Gone"}]}}}}`,
	} {
		if page, err := docs.Render([]byte(text)); err == nil {
			t.Errorf("%s is rendered: %.80s", text, page)
		}
	}
}
