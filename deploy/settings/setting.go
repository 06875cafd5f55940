package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Services are those that have settings: each a folder at the top with a Config in its config.go.
var Services = []string{"gateway", "core"}

// Setting is one environment variable of a service.
type Setting struct {
	Variable string
	Default  string // empty for none
	Kind     string
	// Meaning is what the field's comment says of it, with settings called by their variables: what it is, its unit
	// and its bounds.
	Meaning string
}

// Read lists a service's settings in the order of its Config; root is the repository. A field without a variable or a
// comment is an error, and so is a comment that states another default than the field's own.
func Read(root, service string) ([]Setting, error) {
	path := filepath.Join(root, service, "config.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read the settings of %s: %w", service, err)
	}
	fields := configFields(file)
	if len(fields) == 0 {
		return nil, fmt.Errorf("%s has no struct Config with fields", path)
	}
	variables := map[string]string{} // by field
	for _, field := range fields {
		for _, name := range field.Names {
			variables[name.Name] = tagOf(field).Get("env")
		}
	}
	var settings []Setting
	for _, field := range fields {
		setting, err := settingOf(field, variables)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		settings = append(settings, setting)
	}
	return settings, nil
}

func configFields(file *ast.File) []*ast.Field {
	var fields []*ast.Field
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Config" {
			return true
		}
		if body, ok := spec.Type.(*ast.StructType); ok {
			fields = body.Fields.List
		}
		return false
	})
	return fields
}

func tagOf(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(field.Tag.Value) // the parser has seen that it is a string
	return reflect.StructTag(text)
}

func settingOf(field *ast.Field, variables map[string]string) (Setting, error) {
	if len(field.Names) != 1 {
		return Setting{}, fmt.Errorf("%s: one name a field, please", types.ExprString(field.Type))
	}
	name, tag := field.Names[0].Name, tagOf(field)
	s := Setting{Variable: tag.Get("env"), Default: tag.Get("envDefault"), Kind: kindOf(types.ExprString(field.Type))}
	if s.Variable == "" {
		return Setting{}, fmt.Errorf("%s has no env tag", name)
	}
	comment := strings.Join(strings.Fields(field.Doc.Text()), " ")
	said, starts := strings.CutPrefix(comment, name+" ")
	if !starts {
		return Setting{}, fmt.Errorf("the comment of %s must begin with its name", name)
	}
	said, err := withoutDefault(said, s.Default)
	if err != nil {
		return Setting{}, fmt.Errorf("the comment of %s: %w", name, err)
	}
	for _, verb := range []string{"is ", "are "} {
		said = strings.TrimPrefix(said, verb)
	}
	s.Meaning = capital(inVariables(said, variables))
	return s, nil
}

func kindOf(goType string) string {
	switch goType {
	case "telemetry.Secret":
		return "secret"
	case "time.Duration":
		return "duration"
	case "int", "float64":
		return "number"
	case "bool":
		return "true or false"
	case "[]string", "[]netip.Prefix":
		return "list"
	default:
		return "text"
	}
}

var statedDefault = regexp.MustCompile(`\bDefault (none|.+?)([;.])( |$)`)

// withoutDefault drops a default that the comment states, and says so if that is not what the field has.
func withoutDefault(comment, value string) (string, error) {
	found := statedDefault.FindStringSubmatchIndex(comment)
	if found == nil {
		return comment, nil
	}
	stated := comment[found[2]:found[3]]
	if stated != value && (stated != "none" || value != "") {
		return "", fmt.Errorf("it says that the default is %s, which is %q", stated, value)
	}
	return strings.TrimSpace(comment[:found[0]] + capital(comment[found[1]:])), nil
}

var identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// inVariables calls every setting by its variable: nobody who sets one sees Go's fields.
func inVariables(text string, variables map[string]string) string {
	known := map[string]bool{}
	for _, variable := range variables {
		known[variable] = true
	}
	return identifier.ReplaceAllStringFunc(text, func(word string) string {
		if variable := variables[word]; variable != "" && word != capital(strings.ToLower(word)) {
			return "`" + variable + "`"
		}
		if known[word] {
			return "`" + word + "`"
		}
		return word
	})
}

// capital begins a text as a sentence; an address stays as it is.
func capital(text string) string {
	if text == "" || strings.HasPrefix(text, "http") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
