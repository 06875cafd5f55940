package docs

import (
	"fmt"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// samples are blocks of code that say the same in several languages, of which a reader sees one.
type samples struct {
	ast.BaseBlock
	number int
}

var kindSamples = ast.NewNodeKind("Samples")

// Kind implements ast.Node.
func (*samples) Kind() ast.NodeKind { return kindSamples }

// Dump implements ast.Node.
func (s *samples) Dump(source []byte, level int) { ast.DumpHelper(s, source, level, nil, nil) }

// sampleLanguages are the languages of samples, as readers know them.
var sampleLanguages = map[string]string{"sh": "curl", "ts": "TypeScript", "go": "Go"}

// gatherSamples puts blocks of code that follow each other, in languages of samples, into one node.
func gatherSamples(root ast.Node, source []byte) {
	isSample := func(n ast.Node) bool {
		block, ok := n.(*ast.FencedCodeBlock)
		return ok && sampleLanguages[string(block.Language(source))] != ""
	}
	number := 0
	for block := root.FirstChild(); block != nil; block = block.NextSibling() {
		if !isSample(block) || !isSample(block.NextSibling()) {
			continue
		}
		number++
		together := &samples{number: number}
		root.InsertBefore(root, block, together)
		for isSample(together.NextSibling()) {
			together.AppendChild(together, together.NextSibling())
		}
		block = together
	}
}

// renderSamples writes a choice of the language before the blocks, which works without scripts.
func renderSamples(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	s, ok := n.(*samples)
	if !ok || !entering {
		_, err := w.WriteString("</fieldset>\n")
		return ast.WalkContinue, err
	}
	fmt.Fprint(w, "<fieldset class=\"samples\"><legend class=\"unseen\">Language</legend>\n")
	for child := s.FirstChild(); child != nil; child = child.NextSibling() {
		block, ok := child.(*ast.FencedCodeBlock)
		if !ok {
			continue
		}
		language, checked := string(block.Language(source)), ""
		if child == s.FirstChild() {
			checked = " checked"
		}
		fmt.Fprintf(w, `<input type="radio" name="sample-%d" id="sample-%d-%s" value="%s"%s><label for="sample-%d-%s">%s</label>`+"\n",
			s.number, s.number, language, language, checked, s.number, language, sampleLanguages[language])
	}
	return ast.WalkContinue, nil
}
