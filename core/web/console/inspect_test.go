package console_test

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// ofAccount are forms about the account that the session acts on, which does not show in their path, without the account they are for.
var ofAccount = regexp.MustCompile(`^/console/(keys|webhooks|transfers/new/\w+|members/\w+)$`)

// inspect holds a page to what every page keeps: the headers, nothing inline, nothing from elsewhere, every control
// labelled, every id there once and every one that is referred to.
func (a *answer) inspect() {
	a.t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":          "no-store",
		"Content-Type":           "text/html; charset=utf-8",
		"Referrer-Policy":        "same-origin",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := a.header.Get(name); got != want {
			a.t.Errorf("%s: %s is %q, want %q", a.what, name, got, want)
		}
	}
	ids := map[string]int{}
	labelled := map[string]bool{}
	for n := range a.root.Descendants() {
		if id := attribute(n, "id"); id != "" {
			ids[id]++
			if ids[id] > 1 {
				a.t.Errorf("%s: the id %q is there twice", a.what, id)
			}
		}
		if n.Data == "label" {
			labelled[attribute(n, "for")] = true
		}
	}
	for n := range a.root.Descendants() {
		if n.Type == html.ElementNode {
			a.inspectElement(n, ids, labelled)
		}
	}
	for _, landmark := range []string{"main", "header", "nav", "footer", "h1", "title"} {
		if n := a.count(landmark); n < 1 || (n > 1 && landmark != "nav") {
			a.t.Errorf("%s has %d <%s>", a.what, n, landmark)
		}
	}
}

func (a *answer) inspectElement(n *html.Node, ids map[string]int, labelled map[string]bool) {
	a.t.Helper()
	for _, at := range n.Attr {
		switch {
		case at.Key == "data-copy" && !slices.ContainsFunc(n.Attr, func(at html.Attribute) bool { return at.Key == "hidden" }):
			a.t.Errorf("%s: the button that copies %s shows where no script runs", a.what, at.Val)
		case strings.HasPrefix(at.Key, "on"), at.Key == "style":
			a.t.Errorf("%s: inline %s on <%s>", a.what, at.Key, n.Data)
		case at.Key == "src" || (at.Key == "href" && n.Data == "link"):
			if !strings.HasPrefix(at.Val, "/console/assets/") {
				a.t.Errorf("%s: <%s> loads %q", a.what, n.Data, at.Val)
			}
		case at.Key == "aria-describedby", at.Key == "aria-labelledby", at.Key == "for",
			at.Key == "href" && strings.HasPrefix(at.Val, "#"):
			for id := range strings.FieldsSeq(strings.TrimPrefix(at.Val, "#")) {
				if ids[id] == 0 {
					a.t.Errorf("%s: <%s %s> refers to %q, which is not there", a.what, n.Data, at.Key, id)
				}
			}
		}
	}
	switch n.Data {
	case "style":
		a.t.Errorf("%s has an inline style sheet", a.what)
	case "script":
		if attribute(n, "src") == "" {
			a.t.Errorf("%s has an inline script", a.what)
		}
	case "input", "select", "textarea":
		if attribute(n, "type") != "hidden" && !labelled[attribute(n, "id")] {
			a.t.Errorf("%s: <%s name=%q> has no label", a.what, n.Data, attribute(n, "name"))
		}
	case "th":
		if attribute(n, "scope") == "" {
			a.t.Errorf("%s has a <th> without a scope", a.what)
		}
	case "form":
		if action := attribute(n, "action"); !strings.HasPrefix(action, "/console") || ofAccount.MatchString(action) {
			a.t.Errorf("%s has a form for %q", a.what, action)
		}
	}
}

func attribute(n *html.Node, name string) string {
	for _, at := range n.Attr {
		if at.Key == name {
			return at.Val
		}
	}
	return ""
}

func (a *answer) count(element string) (n int) {
	for e := range a.root.Descendants() {
		if e.Type == html.ElementNode && e.Namespace == "" && e.Data == element {
			n++
		}
	}
	return n
}

// find is the first element that fits, nil for none.
func (a *answer) find(fits func(*html.Node) bool) *html.Node {
	for n := range a.root.Descendants() {
		if n.Type == html.ElementNode && fits(n) {
			return n
		}
	}
	return nil
}

// field is the value of a control.
func (a *answer) field(name string) string {
	a.t.Helper()
	n := a.find(func(n *html.Node) bool { return attribute(n, "name") == name })
	if n == nil {
		a.t.Fatalf("%s has no field %q:\n%s", a.what, name, a.text())
	}
	return attribute(n, "value")
}

// element is the text of the element with this id.
func (a *answer) element(id string) string {
	a.t.Helper()
	n := a.find(func(n *html.Node) bool { return attribute(n, "id") == id })
	if n == nil {
		a.t.Fatalf("%s has no element %q:\n%s", a.what, id, a.text())
	}
	return textOf(n)
}

// link is where the first link of main goes that begins like this, empty for none.
func (a *answer) link(begins string) string {
	main := a.find(func(n *html.Node) bool { return n.Data == "main" })
	for n := range main.Descendants() {
		if value := attribute(n, "href"); strings.HasPrefix(value, begins) {
			return value
		}
	}
	return ""
}

// form is the form that is sent to this path.
func (a *answer) form(path string) *html.Node {
	a.t.Helper()
	n := a.find(func(n *html.Node) bool {
		at, _, _ := strings.Cut(attribute(n, "action"), "?")
		return n.Data == "form" && at == path
	})
	if n == nil {
		a.t.Fatalf("%s has no form for %s", a.what, path)
	}
	return n
}

// tied expects the problem to be the description of its field, the field to be marked, and the summary to lead there.
func (a *answer) tied(field, problem string) {
	a.t.Helper()
	control := a.find(func(n *html.Node) bool { return attribute(n, "id") == field })
	if control == nil {
		a.t.Errorf("%s has no control %q", a.what, field)
		return
	}
	if got := a.element(field + "-problem"); got != problem {
		a.t.Errorf("%s says of %s %q, want %q", a.what, field, got, problem)
	}
	if !slices.Contains(strings.Fields(attribute(control, "aria-describedby")), field+"-problem") || attribute(control, "aria-invalid") != "true" {
		a.t.Errorf("%s: the problem of %s is not tied to it", a.what, field)
	}
	if a.find(func(n *html.Node) bool {
		return n.Data == "a" && attribute(n, "href") == "#"+field && textOf(n) == problem
	}) == nil {
		a.t.Errorf("%s: the summary does not lead to %s", a.what, field)
	}
	a.alerts(problem)
}

// alerts expects a summary that screen readers say at once, and that has the focus.
func (a *answer) alerts(problem string) {
	a.t.Helper()
	n := a.find(func(n *html.Node) bool { return attribute(n, "role") == "alert" })
	if n == nil || !strings.Contains(textOf(n), problem) {
		a.t.Errorf("%s does not alert of %q:\n%s", a.what, problem, a.text())
	}
}

// text is what a page says, with single spaces.
func (a *answer) text() string {
	if a.root == nil {
		return a.body
	}
	return textOf(a.root)
}

func textOf(root *html.Node) string {
	var words []string
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			words = append(words, strings.Fields(n.Data)...)
		}
	}
	return strings.Join(words, " ")
}
