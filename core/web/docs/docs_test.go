package docs_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"intents.internal/core/web/docs"
	"intents.internal/pkg/wire"
)

const publicURL = "https://intents.example.org"

var rendered = sync.OnceValues(func() (documents map[string]docs.Document, err error) {
	openAPI, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		return nil, err
	}
	return docs.Render(openAPI, publicURL)
})

func render(t *testing.T) (pages map[string]string, openAPI []byte) {
	t.Helper()
	openAPI, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := rendered()
	if err != nil {
		t.Fatal(err)
	}
	pages = map[string]string{}
	for path, d := range documents {
		if d.MediaType == "text/html; charset=utf-8" {
			pages[path] = string(d.Body)
		}
	}
	return pages, openAPI
}

// A gateway forwards the pages of wire.DocsPages and no others.
func TestRender_Paths(t *testing.T) {
	t.Parallel()
	documents, err := docs.Render([]byte(`{}`), publicURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{docs.OverviewPath, docs.StylePath, docs.ScriptPath, docs.AgentsPath, docs.ClientPath} {
		if len(documents[path].Body) == 0 {
			t.Errorf("there is no %s", path)
		}
	}
	pages, _ := render(t)
	have := append(slices.Collect(maps.Keys(pages)), docs.StylePath, docs.ScriptPath, docs.AgentsPath, docs.ClientPath)
	want := append(slices.Clone(wire.DocsPages), docs.OverviewPath)
	slices.Sort(have)
	slices.Sort(want)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("paths (-wire.DocsPages +rendered):\n%s", diff)
	}
}

func TestRender_EveryOperation(t *testing.T) {
	t.Parallel()
	pages, openAPI := render(t)
	var document struct {
		Paths, Webhooks map[string]map[string]json.RawMessage
		Components      struct {
			Schemas, Responses, Headers map[string]any
		}
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Webhooks) == 0 {
		t.Error("the document has no webhooks")
	}
	all := strings.Join(slices.Collect(maps.Values(pages)), "")
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
			wanted = append(wanted, `<h2 id="`+named.OperationID+`">`, method+"</span> <code>"+path+"</code>", method+"</span> "+path+"</a>")
		}
	}
	for name := range document.Components.Schemas {
		wanted = append(wanted, `<h2 id="schema-`+name+`">`)
	}
	for name := range document.Components.Responses {
		wanted = append(wanted, `<h2 id="answer-`+name+`">`)
	}
	for name := range document.Components.Headers {
		wanted = append(wanted, `<div id="header-`+name+`">`)
	}
	for _, want := range wanted {
		if strings.Count(all, want) != 1 {
			t.Errorf("the pages have %s %d times", want, strings.Count(all, want))
		}
	}
}

// A reader sees which credential an operation needs.
func TestRender_Credentials(t *testing.T) {
	t.Parallel()
	pages, _ := render(t)
	if want := `<span class="fact">API key or client token</span></p>`; strings.Count(pages["/docs/reference/transfers"], want) != 3 {
		t.Errorf("not three operations say %s", want)
	}
	for path, want := range map[string]string{"transfers": "API key", "api-keys": "Browser session", "service": "Anyone", "requests-to-webhooks": "Sent to your URL"} {
		if !strings.Contains(pages["/docs/reference/"+path], `<span class="fact">`+want+`</span></p>`) {
			t.Errorf("no operation of %s says %q", path, want)
		}
	}
}

// Every code has its place on the page of errors, with a status or an operation, and what it says to a client.
func TestRender_ErrorCodes(t *testing.T) {
	t.Parallel()
	pages, openAPI := render(t)
	var document struct {
		Components struct {
			Schemas struct{ ErrorCode struct{ Enum []string } }
		}
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	page := pages["/docs/errors"]
	for _, code := range document.Components.Schemas.ErrorCode.Enum {
		_, entry, found := strings.Cut(page, `<dt id="`+code+`">`)
		entry, _, _ = strings.Cut(entry, "</div>")
		explained := strings.Contains(entry, "<p>“") || strings.Contains(page, "<td><code>"+code+"</code></td>")
		if !found || !explained || !strings.Contains(entry, "Many operations") && !strings.Contains(entry, "<a href=") {
			t.Errorf("%s is not explained: %s", code, entry)
		}
	}
	if len(document.Components.Schemas.ErrorCode.Enum) < 100 {
		t.Error("the document has fewer codes than it had")
	}
}

func TestRender_SelfContained(t *testing.T) {
	t.Parallel()
	pages, _ := render(t)
	for path, page := range pages {
		for _, forbidden := range []string{
			`(?i)<(style|iframe|object|embed|img|base)\b`, `(?i)\s(style|on\w+|srcset)\s*=`, `(?i)<script [^/]*[^>]*>[^<]`,
			`(?i)\b(src|action)="(//|[a-z]+:|[^/])`, `(?i)<link [^>]*href="(//|[a-z]+:)`, `(?i)href="(//|http:|javascript:)`, `ZgotmplZ`, `<no value>`, `intents\.example\.com`,
		} {
			if found := regexp.MustCompile(forbidden).FindString(page); found != "" {
				t.Errorf("%s has %q (%s)", path, found, forbidden)
			}
		}
	}
	for path, page := range pages {
		if scripts, forms := strings.Count(page, "<script"), strings.Count(page, "<form"); scripts != 1 || forms != 1 {
			t.Errorf("%s has %d scripts and %d forms", path, scripts, forms)
		}
	}
	if found := regexp.MustCompile(`(?i)@import|url\(|https?:`).Find(docs.Style); found != nil {
		t.Errorf("the style sheet has %q", found)
	}
}

// The index leads to every page, guide's part, operation, object and error code.
func TestRender_Index(t *testing.T) {
	t.Parallel()
	pages, _ := render(t)
	index := pages["/docs/search"]
	for path, title := range map[string]string{
		"/docs/webhooks#what-a-receiver-does":           "What a receiver does",
		"/docs/reference/transfers#createTransfer":      "POST /v2/transfers",
		"/docs/reference/objects#schema-TransferStatus": "TransferStatus",
		"/docs/errors#RATE_LIMITED":                     "RATE_LIMITED",
		"/docs/reference/responses#header-RetryAfter":   "RetryAfter",
	} {
		if want := `<a href="` + path + `">` + title + `</a>`; strings.Count(index, want) != 1 {
			t.Errorf("the index has not %s", want)
		}
	}
	if want := `data-text="Every error is JSON with a code, a message and a requestId, some with details.`; !strings.Contains(index, want) {
		t.Error("the index does not have the words of a guide")
	}
}

// guideCode is a block of code of a guide, with its first line.
var guideCode = regexp.MustCompile("(?ms)^```([a-z]*)([^\n]*)\n(.*?)^```$")

// Code in guides is code that tests run: the quickstart and the receivers of webhooks by the journeys, the requests of the guide for agents by
// the API's tests. An answer is one that a test got.
func TestGuides_Code(t *testing.T) {
	t.Parallel()
	_, openAPI := render(t)
	run := map[string][]string{"quickstart.md": {"sh", "ts", "go"}, "clients.md": {"sh"}, "front-ends.md": {"sh"}, "webhooks.md": {"ts", "go", ""}}
	files, err := os.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, file := range files {
		text, err := os.ReadFile("pages/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range guideCode.FindAllSubmatch(text, -1) {
			blocks++
			language, caption, code := string(block[1]), block[2], block[3]
			var answer struct{ Code, Message string }
			switch {
			case slices.Contains(run[file.Name()], language):
			case language == "json" && file.Name() == "agents.md" && len(caption) > 0:
			case language == "json" && json.Unmarshal(code, &answer) == nil && bytes.Contains(openAPI, []byte(answer.Message)):
			default:
				t.Errorf("no test runs the code of %s:\n%s", file.Name(), block[0])
			}
		}
	}
	if blocks < 15 {
		t.Errorf("the guides have %d blocks of code", blocks)
	}
}

// Blocks that say the same in several languages are one choice.
func TestRender_Samples(t *testing.T) {
	t.Parallel()
	pages, _ := render(t)
	page := pages["/docs/quickstart"]
	for want, times := range map[string]int{
		`<fieldset class="samples">`: 2, `type="radio"`: 6, ` checked>`: 2, `<div class="sample"><pre`: 6, `</fieldset>`: 2, publicURL: 6 + 1,
	} {
		if got := strings.Count(page, want); got != times {
			t.Errorf("the quickstart has %s %d times, want %d", want, got, times)
		}
	}
	if strings.Contains(pages["/docs/webhooks"], "fieldset") {
		t.Error("blocks that stand alone are a choice")
	}
}

// maxPage bounds a page: the one page that there was had 1.1 MB.
const maxPage = 384 << 10

// The pages of a person who only clicks: the menu leads to each, every link and anchor leads somewhere, and no page is too long.
func TestRender_Links(t *testing.T) {
	t.Parallel()
	pages, openAPI := render(t)
	ids, links := map[string]bool{}, map[string][]string{}
	for path, page := range pages {
		if len(page) > maxPage {
			t.Errorf("%s has %d bytes", path, len(page))
		}
		root, err := html.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		ids[path] = true
		for n := range root.Descendants() {
			for _, a := range n.Attr {
				switch a.Key {
				case "id":
					if ids[path+"#"+a.Val] {
						t.Errorf("%s: two elements have the id %q", path, a.Val)
					}
					ids[path+"#"+a.Val] = true
				case "aria-labelledby":
					links[path] = append(links[path], "#"+a.Val)
				case "href":
					links[path] = append(links[path], a.Val)
				}
			}
		}
	}
	for path, found := range links {
		for _, link := range found {
			if strings.HasPrefix(link, "#") {
				link = path + link
			}
			if !ids[link] && !servedElsewhere(openAPI, link) {
				t.Errorf("%s: %s leads nowhere", path, link)
			}
		}
		for other := range pages {
			if !slices.Contains(found, other) {
				t.Errorf("the menu of %s does not lead to %s", path, other)
			}
		}
	}
}

// servedElsewhere reports whether a link leads to another site, the console, or a document that is no page.
func servedElsewhere(openAPI []byte, link string) bool {
	return strings.HasPrefix(link, "https://") || slices.Contains([]string{"/console", docs.LLMsPath, docs.StylePath, docs.ScriptPath, docs.AgentsPath, docs.ClientPath}, link) ||
		bytes.Contains(openAPI, []byte(`"`+link+`": {`))
}

func TestRender_ReferenceDescription(t *testing.T) {
	t.Parallel()
	documents, err := docs.Render([]byte(`{"tags":[{"name":"A b"}],"components":{"responses":{"No":{"description":"shared"}}},"paths":{"/a":{"get":{"tags":["A b"],
		"responses":{"404":{"$ref":"#/components/responses/No","description":"its own"},"410":{"$ref":"#/components/responses/No"}}}}}}`), publicURL)
	if err != nil {
		t.Fatal(err)
	}
	operations, responses := string(documents["/docs/reference/a-b"].Body), string(documents["/docs/reference/responses"].Body)
	if strings.Count(operations, "its own") != 1 || strings.Count(operations, "shared") != 1 || strings.Count(responses, "shared") != 1 {
		t.Errorf("%s\n%s", operations, responses)
	}
}

func TestRender_AnswerAlternatives(t *testing.T) {
	t.Parallel()
	pages, _ := render(t)
	const objects = `<a href="/docs/reference/objects#schema-`
	want := objects + `CreatedBatch">CreatedBatch</a> or ` + objects + `CreatedBatchSummary">CreatedBatchSummary</a>`
	if !strings.Contains(pages["/docs/reference/batches"], want) {
		t.Errorf("the page does not say %s", want)
	}
}

func TestRender_RequestAlternatives(t *testing.T) {
	t.Parallel()
	documents, err := docs.Render([]byte(`{"tags":[{"name":"a"}],"components":{"schemas":{"One":{"properties":{"x":{}}},"Other":{"properties":{"y":{}}}}},
		"paths":{"/a":{"post":{"tags":["a"],"requestBody":{"content":{"application/json":{"schema":{
		"oneOf":[{"$ref":"#/components/schemas/One"},{"$ref":"#/components/schemas/Other"}]}}}}}}}}`), publicURL)
	if err != nil {
		t.Fatal(err)
	}
	page := string(documents["/docs/reference/a"].Body)
	for _, want := range []string{
		`Body: <a href="/docs/reference/objects#schema-One">One</a>`, `Or: <a href="/docs/reference/objects#schema-Other">Other</a>`,
		`<code>x</code>`, `<code>y</code>`,
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("no %s in %s", want, page)
		}
	}
}

func TestRender_Code(t *testing.T) {
	t.Parallel()
	documents, err := docs.Render([]byte("{\"info\":{\"description\":\"Before.\\n\\n```js\\nconst a = `<b>`\\n\\n  + **c**\\n```\\n\\nAfter `d`.\"}}"), publicURL)
	want := "<p>Before.</p>\n<pre tabindex=\"0\" data-language=\"js\"><code>const a = `&lt;b&gt;`\n\n  + **c**</code></pre>\n<p>After <code>d</code>.</p>\n"
	if page := string(documents["/docs"].Body); err != nil || !strings.Contains(page, want) {
		t.Errorf("%v: no %q in %.3000s", err, want, page)
	}
}

// A document that refers to what it does not have, or has HTML in a text, is a mistake to be found before it is served.
func TestRender_InvalidDocument(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `[]`, `{"paths":[]}`, `{"info":{"description":"a <b>bold</b> word"}}`,
		`{"tags":[{"name":"a"}],"paths":{"/a":{"get":{"tags":["a"],"parameters":[{"$ref":"#/components/parameters/Gone"}]}}}}`,
	} {
		if documents, err := docs.Render([]byte(text), publicURL); err == nil {
			t.Errorf("%s is rendered: %.80s", text, documents["/docs"].Body)
		}
	}
}
