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

// Services are the packages of the services that have a Config in their config.go. The first part is the service's name.
var Services = []string{"gateway/command", "core/command"}

// Setting is one environment variable of a service.
type Setting struct {
	Variable string
	Default  string // empty for none
	Kind     string
	// Meaning is the field's comment (meaning, unit and bounds), with the names of variables instead of fields.
	Meaning string
}

// Read lists a service's settings in the order of its Config; root is the repository. It returns an error for a field without
// a variable or comment, and for a comment with another default than the field's tag.
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
			variables[name.Name] = structTag(field).Get("env")
		}
	}
	var settings []Setting
	for _, field := range fields {
		setting, err := parseSetting(field, variables)
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

func structTag(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(field.Tag.Value) // the parser accepts only string literals
	return reflect.StructTag(text)
}

func parseSetting(field *ast.Field, variables map[string]string) (Setting, error) {
	if len(field.Names) != 1 {
		return Setting{}, fmt.Errorf("%s: declare each field on its own line", types.ExprString(field.Type))
	}
	name, tag := field.Names[0].Name, structTag(field)
	s := Setting{Variable: tag.Get("env"), Default: tag.Get("envDefault"), Kind: kindName(types.ExprString(field.Type))}
	if s.Variable == "" {
		return Setting{}, fmt.Errorf("%s has no env tag", name)
	}
	comment := strings.Join(strings.Fields(field.Doc.Text()), " ")
	meaning, starts := strings.CutPrefix(comment, name+" ")
	if !starts {
		return Setting{}, fmt.Errorf("the comment of %s must begin with its name", name)
	}
	meaning, err := stripDefault(meaning, s.Default)
	if err != nil {
		return Setting{}, fmt.Errorf("the comment of %s: %w", name, err)
	}
	for _, verb := range []string{"is ", "are "} {
		meaning = strings.TrimPrefix(meaning, verb)
	}
	s.Meaning = capitalize(replaceFields(meaning, variables))
	return s, nil
}

func kindName(goType string) string {
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

var defaultPattern = regexp.MustCompile(`\bDefault (none|.+?)([;.])( |$)`)

// stripDefault removes the default from a comment, and returns an error if it is not value.
func stripDefault(comment, value string) (string, error) {
	found := defaultPattern.FindStringSubmatchIndex(comment)
	if found == nil {
		return comment, nil
	}
	stated := comment[found[2]:found[3]]
	if stated != value && (stated != "none" || value != "") {
		return "", fmt.Errorf("it has the default %s, and the field's tag %q", stated, value)
	}
	return strings.TrimSpace(comment[:found[0]] + capitalize(comment[found[1]:])), nil
}

var identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// replaceFields replaces the names of fields by those of their variables.
func replaceFields(text string, variables map[string]string) string {
	known := map[string]bool{}
	for _, variable := range variables {
		known[variable] = true
	}
	return identifier.ReplaceAllStringFunc(text, func(word string) string {
		if variable := variables[word]; variable != "" && word != capitalize(strings.ToLower(word)) {
			return "`" + variable + "`"
		}
		if known[word] {
			return "`" + word + "`"
		}
		return word
	})
}

// capitalize makes the first letter of a text upper-case, unless the text is a URL.
func capitalize(text string) string {
	if text == "" || strings.HasPrefix(text, "http") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
