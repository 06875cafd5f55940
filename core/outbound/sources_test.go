package outbound_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dialing are the names of the standard library that make a connection without the rules of package outbound.
var dialing = map[string][]string{
	"net":      {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialUnix", "DialIP", "Dialer"},
	"tls":      {"Dial", "DialWithDialer", "Dialer"},
	"http":     {"Client", "DefaultClient", "DefaultTransport", "Transport", "Get", "Head", "Post", "PostForm"},
	"smtp":     {"Dial", "SendMail"},
	"httputil": {"ReverseProxy", "NewSingleHostReverseProxy"},
}

// Every connection of core's to another service is made by package outbound. Postgres, Redis and package tracing's exporter have
// dialers of their own; the exporter's responses have the same bounds, of package transport.
func TestSources_NoOtherDialer(t *testing.T) {
	t.Parallel()
	walked := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join("..", "outbound"), path == filepath.Join("..", "pgtest"), path == filepath.Join("..", "web", "webtest"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		walked++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range dialers(file) {
			t.Errorf("%s uses %s: have package outbound make the connection", path, name)
		}
		return nil
	})
	if err != nil || walked < 100 {
		t.Errorf("walked %d files, %v", walked, err)
	}
}

// dialers are the names in dialing that a file uses. A *http.Client, such as one of NewClient's, may be held by anybody.
func dialers(file *ast.File) (found []string) {
	held := map[ast.Node]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.StarExpr:
			held[node.X] = true
		case *ast.SelectorExpr:
			of, ok := node.X.(*ast.Ident)
			if ok && !held[node] && slices.Contains(dialing[of.Name], node.Sel.Name) {
				found = append(found, fmt.Sprintf("%s.%s", of.Name, node.Sel.Name))
			}
		}
		return true
	})
	return found
}
