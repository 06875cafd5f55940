package main

import (
	"fmt"
	"strings"
)

// Document returns text, the content of deploy/settings.md, with new tables between the marker lines; root is the repository.
func Document(root, text string) (string, error) {
	for _, pkg := range Services {
		settings, err := Read(root, pkg)
		if err != nil {
			return "", err
		}
		service, _, _ := strings.Cut(pkg, "/")
		begin := fmt.Sprintf("<!-- settings of %s: written by go run ./deploy/settings -->\n", service)
		end := fmt.Sprintf("<!-- end of %s -->\n", service)
		before, rest, found := strings.Cut(text, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			return "", fmt.Errorf("the document has no lines\n%s%s", begin, end)
		}
		text = before + begin + "\n" + table(settings) + "\n" + end + after
	}
	return text, nil
}

func table(settings []Setting) string {
	var text strings.Builder
	text.WriteString("| variable | kind | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, s := range settings {
		value := "none"
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", s.Variable, s.Kind, escapeCell(value), escapeCell(s.Meaning))
	}
	return text.String()
}

// escapeCell escapes the separator of cells.
func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
