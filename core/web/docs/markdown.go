package docs

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown writes guides and the texts of the OpenAPI document.
type markdown struct{ goldmark.Markdown }

func newMarkdown() *markdown {
	return &markdown{goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
	)}
}

// guide is a guide that was read.
type guide struct {
	title    string
	text     template.HTML
	words    string
	headings []heading
}

// guide reads a guide: its first heading is the title, those of the second level are its parts.
func (m *markdown) guide(source []byte) (g guide, err error) {
	root := m.Parser().Parse(text.NewReader(source))
	title, ok := root.FirstChild().(*ast.Heading)
	if !ok || title.Level != 1 {
		return g, errors.New("it does not begin with its title")
	}
	g.title = plainText(title, source)
	root.RemoveChild(root, title)
	for block := root.FirstChild(); block != nil; block = block.NextSibling() {
		if h, ok := block.(*ast.Heading); ok && h.Level == 2 {
			id, _ := h.AttributeString("id")
			name, _ := id.([]byte)
			g.headings = append(g.headings, heading{ID: string(name), Title: plainText(h, source)})
			continue
		}
		words := &g.words
		if n := len(g.headings); n > 0 {
			words = &g.headings[n-1].Words
		}
		*words = strings.TrimSpace(*words + " " + plainText(block, source))
	}
	gatherSamples(root, source)
	if err := resolveLinks(root); err != nil {
		return g, err
	}
	g.text, err = m.render(root, source)
	return g, err
}

func (m *markdown) render(root ast.Node, source []byte) (template.HTML, error) {
	var out bytes.Buffer
	if err := m.Renderer().Render(&out, source, root); err != nil {
		return "", err
	}
	if bytes.Contains(out.Bytes(), []byte("<!-- raw HTML omitted -->")) {
		return "", fmt.Errorf("a text has HTML, which is not shown; write it as code: %.80q", source)
	}
	return template.HTML(out.String()), nil
}

// prose writes a text of the OpenAPI document with its paragraphs, lists and code.
func (m *markdown) prose(source string) (template.HTML, error) {
	return m.render(m.Parser().Parse(text.NewReader([]byte(source))), []byte(source))
}

// inline writes a text of one paragraph without the paragraph.
func (m *markdown) inline(source string) (template.HTML, error) {
	written, err := m.prose(source)
	const begin, end = "<p>", "</p>\n"
	if one, ok := strings.CutPrefix(string(written), begin); ok && strings.Count(one, begin) == 0 && strings.HasSuffix(one, end) {
		written = template.HTML(strings.TrimSuffix(one, end))
	}
	return written, err
}

// guideLink is a link from a guide to another, by its file, so that it works in the repository too.
var guideLink = regexp.MustCompile(`^([a-z-]+)\.md(#.*)?$`)

// resolveLinks makes a link to the file of a guide one to its page. Other links lead into the page, to a path of the service or to another
// site.
func resolveLinks(root ast.Node) error {
	return ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to := string(link.Destination)
		if file := guideLink.FindStringSubmatch(to); file != nil {
			link.Destination = []byte(guidePath(file[1]) + file[2])
		} else if !strings.HasPrefix(to, "#") && !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "https://") {
			return ast.WalkStop, fmt.Errorf("the link to %s leads to no page of the docs", to)
		}
		return ast.WalkContinue, nil
	})
}

// plainText is the text of a node without its marks, its blocks and lines apart.
func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		t, isText := n.(*ast.Text)
		if isText && entering {
			out.Write(t.Value(source))
		}
		if isText && t.SoftLineBreak() || !entering && n.Type() == ast.TypeBlock {
			out.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// blocks write code and tables that a keyboard can scroll.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(extensionast.KindTable, renderTable)
	r.Register(kindSamples, renderSamples)
}

// renderCode writes a block of code. What its first line says behind the language is its caption.
func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block, ok := n.(*ast.FencedCodeBlock)
	if !ok || !entering {
		return ast.WalkSkipChildren, nil
	}
	language := string(block.Language(source))
	if block.Info != nil {
		if caption := strings.TrimSpace(strings.TrimPrefix(string(block.Info.Value(source)), language)); caption != "" {
			fmt.Fprintf(w, "<p class=\"caption\">%s</p>\n", template.HTMLEscapeString(caption))
		}
	}
	end := "</code></pre>\n"
	if _, ok := n.Parent().(*samples); ok {
		fmt.Fprint(w, "<div class=\"sample\">")
		end = "</code></pre></div>\n"
	}
	fmt.Fprintf(w, "<pre tabindex=\"0\" data-language=\"%s\"><code>", template.HTMLEscapeString(language))
	var code bytes.Buffer
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		code.Write(line.Value(source))
	}
	template.HTMLEscape(w, bytes.TrimSuffix(code.Bytes(), []byte("\n")))
	_, err := w.WriteString(end)
	return ast.WalkSkipChildren, err
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "</table></div>\n"
	if entering {
		tag = "<div class=\"table\" tabindex=\"0\"><table>\n"
	}
	_, err := w.WriteString(tag)
	return ast.WalkContinue, err
}
