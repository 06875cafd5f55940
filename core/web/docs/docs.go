// Package docs turns an OpenAPI 3.1 document into one page for people: HTML and a style sheet, without scripts and
// without anything from elsewhere. It knows the parts of OpenAPI that this service's document uses and no others. Beside it are two texts
// for language models.
package docs

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// The paths of the documents beside the page.
const (
	StylePath  = "/docs/style.css"
	AgentsPath = "/docs/agents.md"
	LLMsPath   = "/llms.txt"
)

// Style is the page's style sheet.
//
//go:embed style.css
var Style []byte

// LLMs is llms.txt (llmstxt.org): what the service is, and links for language models.
//
//go:embed llms.txt
var LLMs []byte

// Agents is a guide in Markdown for programs that act for a user.
//
//go:embed agents.md
var Agents []byte

//go:embed page.html
var pageHTML string

// Render writes the page.
func Render(openAPI []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	page, err := template.New("page").Funcs(template.FuncMap{
		"prose":  prose,
		"inline": inline,
		"pretty": pretty,
		"slug":   slug,
		"status": statusText,
		"schema": d.schema,
		"named":  baseName,
	}).Parse(pageHTML)
	if err != nil {
		return nil, fmt.Errorf("read the page's template: %w", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, view{document: &d, StylePath: StylePath}); err != nil {
		return nil, fmt.Errorf("write the page: %w", err)
	}
	return out.Bytes(), nil
}

var (
	code = regexp.MustCompile("`([^`]+)`")
	bold = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// inline writes the Markdown that the document's texts use: code and bold.
func inline(text string) template.HTML {
	escaped := template.HTMLEscapeString(text)
	escaped = code.ReplaceAllString(escaped, "<code>$1</code>")
	escaped = bold.ReplaceAllString(escaped, "<strong>$1</strong>")
	return template.HTML(escaped)
}

// fence is a paragraph that is code, with an optional language.
var fence = regexp.MustCompile("^```[a-z]*\n((?s:.*))\n```$")

// prose is inline with paragraphs, and code between fences, which has no empty line.
func prose(text string) template.HTML {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if lines := fence.FindStringSubmatch(paragraph); lines != nil {
			out.WriteString(`<pre tabindex="0"><code>` + template.HTMLEscapeString(lines[1]) + "</code></pre>\n")
			continue
		}
		out.WriteString("<p>" + string(inline(paragraph)) + "</p>\n")
	}
	return template.HTML(out.String())
}

func pretty(text json.RawMessage) (string, error) {
	var out bytes.Buffer
	err := json.Indent(&out, text, "", "  ")
	return out.String(), err
}

// slug makes an anchor of a name.
func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

func statusText(status string) string {
	number, err := strconv.Atoi(status)
	switch {
	case err == nil:
		return http.StatusText(number)
	case status == "2XX":
		return "Success"
	default:
		return "Anything else"
	}
}

// baseName is the last part of a reference.
func baseName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }
