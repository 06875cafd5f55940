package docs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

// view is a page beside what all pages share.
type view struct {
	*site
	page *page
}

// Page is the page.
func (v view) Page() *page { return v.page }

// Body writes the page below its title.
func (v view) Body() (template.HTML, error) {
	var out bytes.Buffer
	err := v.templates.ExecuteTemplate(&out, v.page.Template, v)
	return template.HTML(out.String()), err
}

func (s *site) functions() template.FuncMap {
	return template.FuncMap{
		"prose":     s.markdown.prose,
		"inline":    s.markdown.inline,
		"pretty":    pretty,
		"slug":      slug,
		"status":    statusText,
		"schema":    s.schema,
		"named":     baseName,
		"objects":   func() string { return objectsPath },
		"responses": func() string { return responsesPath },
		"style":     func() string { return StylePath },
		"script":    func() string { return ScriptPath },
		"search":    func() string { return searchPath },
	}
}

func pretty(text json.RawMessage) (string, error) {
	var out bytes.Buffer
	err := json.Indent(&out, text, "", "  ")
	return out.String(), err
}

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

// endpoint is an operation with its place.
type endpoint struct {
	operation
	Method string
	// Path is the name of the event for what the service itself sends.
	Path string
	Sent bool
}

// Endpoints are the operations with a tag, in the document's order.
func (d *document) Endpoints(tag string) []endpoint {
	endpoints := tagged(d.Paths, tag)
	for _, sent := range tagged(d.Webhooks, tag) {
		sent.Sent = true
		endpoints = append(endpoints, sent)
	}
	return endpoints
}

func tagged(paths ordered[pathItem], tag string) (endpoints []endpoint) {
	for _, path := range paths {
		for _, of := range []struct {
			method    string
			operation *operation
		}{{"GET", path.Value.Get}, {"POST", path.Value.Post}, {"PATCH", path.Value.Patch}, {"DELETE", path.Value.Delete}} {
			if of.operation == nil || len(of.operation.Tags) == 0 || of.operation.Tags[0] != tag {
				continue
			}
			one := endpoint{operation: *of.operation, Method: of.method, Path: path.Name}
			one.Parameters = append(one.Parameters, path.Value.Parameters...)
			endpoints = append(endpoints, one)
		}
	}
	return endpoints
}

// Parameter follows a reference.
func (d *document) Parameter(p parameter) (parameter, error) {
	if p.Ref == "" {
		return p, nil
	}
	return d.Components.Parameters.find(p.Ref)
}

// Response follows a reference, whose own description replaces the shared one.
func (d *document) Response(r response) (response, error) {
	if r.Ref == "" {
		return r, nil
	}
	found, err := d.Components.Responses.find(r.Ref)
	found.Ref, found.Description = r.Ref, cmp.Or(r.Description, found.Description)
	return found, err
}

// Who tells who may ask.
func (e endpoint) Who() string {
	switch {
	case e.Sent:
		return "Sent to your URL"
	case len(e.Security) == 0:
		return "Anyone"
	case len(e.Security[0]) == 0:
		return "Anyone; reads the browser session"
	case len(e.Security) > 1 && e.Security[1]["bearerToken"] != nil:
		return "API key or client token"
	case e.Security[0]["apiKeyHeader"] != nil:
		return "API key"
	default:
		return "Browser session"
	}
}
