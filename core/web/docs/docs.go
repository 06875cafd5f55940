// Package docs makes the pages of /docs: guides in Markdown, and the reference from the service's OpenAPI 3.1 document. It knows the parts of
// OpenAPI that this document uses and no others. Pages work without scripts; with
// one they have copy buttons and a search. Beside them are two texts for language models.
package docs

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"intents.internal/pkg/client/typescript"
)

// The paths of the documents that are not pages, and of the first page.
const (
	OverviewPath = "/docs"
	StylePath    = "/docs/style.css"
	ScriptPath   = "/docs/docs.js"
	AgentsPath   = "/docs/agents.md"
	ClientPath   = "/docs/client.tgz"
	LLMsPath     = "/llms.txt"
)

// Style is the pages' style sheet.
//
//go:embed style.css
var Style []byte

// script is what the pages can do better with scripts.
//
//go:embed docs.js
var script []byte

// LLMs is llms.txt (llmstxt.org): what the service is, and links for language models.
//
//go:embed llms.txt
var LLMs []byte

// Agents is a guide in Markdown for programs that act for a user. It is a page too.
//
//go:embed pages/agents.md
var Agents []byte

//go:embed pages/*.md
var guides embed.FS

//go:embed templates/*.html
var templates embed.FS

// exampleURL stands for the service's own address in guides.
const exampleURL = "https://intents.example.com"

// Document is the body of a path.
type Document struct {
	MediaType string
	Body      []byte
}

// MediaTypePackage is the media type of the client's package, which is compressed already.
const MediaTypePackage = "application/gzip"

const (
	mediaTypeHTML     = "text/html; charset=utf-8"
	mediaTypeScript   = "text/javascript; charset=utf-8"
	mediaTypeStyle    = "text/css; charset=utf-8"
	mediaTypeMarkdown = "text/markdown; charset=utf-8"
)

// Render writes the documents of a service at this address, by their paths: /docs and all below it.
func Render(openAPI []byte, publicURL string) (map[string]Document, error) {
	s, err := newSite(openAPI, publicURL)
	if err != nil {
		return nil, err
	}
	documents := map[string]Document{
		StylePath:  {mediaTypeStyle, Style},
		ScriptPath: {mediaTypeScript, script},
		AgentsPath: {mediaTypeMarkdown, Agents},
		ClientPath: {MediaTypePackage, typescript.Package},
	}
	for _, p := range s.pages() {
		var out bytes.Buffer
		if err := s.templates.ExecuteTemplate(&out, "layout.html", view{site: s, page: p}); err != nil {
			return nil, fmt.Errorf("write the page %s: %w", p.Path, err)
		}
		documents[p.Path] = Document{mediaTypeHTML, out.Bytes()}
	}
	return documents, nil
}

// site is what all pages share.
type site struct {
	*document
	Menu      []section
	templates *template.Template
	markdown  *markdown
}

// section is a part of the menu.
type section struct {
	Title string
	Pages []*page
}

// page is a page with what the menu and the search say of it.
type page struct {
	Path, Title string
	// Name is the page's in the menu.
	Name string
	// Template writes the page below its title.
	Template string
	// Text is the guide of the page, empty for a page of the reference.
	Text template.HTML
	// Tag is the group of operations of the page, empty for other pages.
	Tag *tag
	// Words is the text of a guide before its first heading, for the search.
	Words string
	// Headings are the parts of the page.
	Headings []heading
}

// heading is a part of a page. Words is its text, of a guide.
type heading struct{ ID, Title, Method, Words string }

func newSite(openAPI []byte, publicURL string) (*site, error) {
	s := &site{document: &document{}, markdown: newMarkdown()}
	if err := json.Unmarshal(openAPI, s.document); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var err error
	if s.templates, err = template.New("docs").Funcs(s.functions()).ParseFS(templates, "templates/*.html"); err != nil {
		return nil, fmt.Errorf("read the templates: %w", err)
	}
	for _, of := range guideSections {
		made := section{Title: of.title}
		for _, name := range of.names {
			p, err := s.guide(name, publicURL)
			if err != nil {
				return nil, fmt.Errorf("read the guide %s: %w", name, err)
			}
			made.Pages = append(made.Pages, p)
		}
		s.Menu = append(s.Menu, made)
	}
	s.Menu = append(s.Menu, section{Title: "Reference", Pages: s.reference()})
	return s, nil
}

// pages are those of the menu in its order.
func (s *site) pages() (all []*page) {
	for _, part := range s.Menu {
		all = append(all, part.Pages...)
	}
	return all
}

// overview is the guide at /docs; every other guide is at /docs/ and its name.
const overview = "overview"

var guideSections = []struct {
	title string
	names []string
}{
	{"Start", []string{overview, "quickstart", "clients", "testing", "front-ends"}},
	{"Guides", []string{"webhooks", "errors", "finding", "limits", "batches", "signing", "agents"}},
}

// guideTemplates are the templates of guides that have a part made of the OpenAPI document.
var guideTemplates = map[string]string{overview: "overview.html", "errors": "errors.html"}

// shortNames are those of guides with a long title.
var shortNames = map[string]string{overview: "Overview", "agents": "Agents"}

func (s *site) guide(name, publicURL string) (*page, error) {
	text, err := guides.ReadFile("pages/" + name + ".md")
	if err != nil {
		return nil, err
	}
	p := &page{Path: guidePath(name), Template: "guide.html"}
	if made, ok := guideTemplates[name]; ok {
		p.Template = made
	}
	rendered, err := s.markdown.guide(bytes.ReplaceAll(text, []byte(exampleURL), []byte(publicURL)))
	if err != nil {
		return nil, err
	}
	p.Title, p.Text, p.Words, p.Headings = rendered.title, rendered.text, rendered.words, rendered.headings
	p.Name = cmp.Or(shortNames[name], p.Title)
	return p, nil
}

func guidePath(name string) string {
	if name == overview {
		return OverviewPath
	}
	return OverviewPath + "/" + name
}

// The paths of the reference and of its index. A group of operations is at referencePath and its slug.
const (
	referencePath = OverviewPath + "/reference/"
	responsesPath = referencePath + "responses"
	objectsPath   = referencePath + "objects"
	searchPath    = OverviewPath + "/search"
)

func (s *site) reference() (pages []*page) {
	for n := range s.Tags {
		of := &s.Tags[n]
		p := &page{Path: referencePath + slug(of.Name), Title: of.Name, Name: of.Name, Template: "operations.html", Tag: of}
		for _, e := range s.Endpoints(of.Name) {
			p.Headings = append(p.Headings, heading{ID: e.OperationID, Title: e.Path, Method: e.Method})
		}
		pages = append(pages, p)
	}
	responses := &page{Path: responsesPath, Title: "Common responses", Name: "Common responses", Template: "responses.html"}
	for _, r := range s.Components.Responses {
		responses.Headings = append(responses.Headings, heading{ID: "answer-" + r.Name, Title: r.Name})
	}
	return append(pages,
		responses,
		&page{Path: objectsPath, Title: "Objects", Name: "Objects", Template: "objects.html"},
		&page{Path: searchPath, Title: "Search", Name: "Search and index", Template: "search.html"})
}

// slug makes a path or a class of a name.
func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }
