package docs

import (
	"encoding/json"
	"slices"
	"strings"
)

// errorCode is a code of the document with what is known of it there.
type errorCode struct {
	Code     string
	Statuses []string
	// Messages are those of the document's examples, each once.
	Messages []string
	// Operations may answer with it. They are none where more than mostOperations do.
	Operations []operationLink
	count      int
}

// mostOperations is how many operations are named beside a code.
const mostOperations = 6

// operationLink leads to an operation of the reference.
type operationLink struct{ Method, Path, Href string }

// Everywhere reports whether too many operations answer with the code to name them.
func (c errorCode) Everywhere() bool { return c.count > mostOperations }

// ErrorCodes are all codes in the order of the document.
func (d *document) ErrorCodes() ([]*errorCode, error) {
	declared, err := d.schema("ErrorCode")
	if err != nil {
		return nil, nil //nolint:nilerr // a document without codes has none to show
	}
	codes := make([]*errorCode, 0, len(declared.Enum))
	byName := map[string]*errorCode{}
	for _, name := range declared.Words() {
		codes = append(codes, &errorCode{Code: name})
		byName[name] = codes[len(codes)-1]
	}
	for _, tag := range d.Tags {
		for _, e := range d.Endpoints(tag.Name) {
			link := operationLink{e.Method, e.Path, referencePath + slug(tag.Name) + "#" + e.OperationID}
			for _, answer := range e.Responses {
				resolved, err := d.Response(answer.Value)
				if err != nil {
					return nil, err
				}
				for _, found := range d.codesOf(resolved) {
					if code := byName[found.Code]; code != nil {
						code.add(answer.Name, found.Message, link)
					}
				}
			}
		}
	}
	return codes, nil
}

func (c *errorCode) add(status, message string, link operationLink) {
	if status != "default" && !slices.Contains(c.Statuses, status) {
		c.Statuses = append(c.Statuses, status)
		slices.Sort(c.Statuses)
	}
	if message != "" && !slices.Contains(c.Messages, message) {
		c.Messages = append(c.Messages, message)
	}
	if slices.Contains(c.Operations, link) {
		return
	}
	if c.count++; c.count <= mostOperations {
		c.Operations = append(c.Operations, link)
	}
}

// foundCode is a code of a response, with the message of an example.
type foundCode struct{ Code, Message string }

// codesOf are the codes that a response's schema and examples name.
func (d *document) codesOf(r response) (found []foundCode) {
	for _, content := range r.Content {
		for _, code := range d.codesOfSchema(content.Value.Schema, 0) {
			found = append(found, foundCode{Code: code})
		}
		for _, example := range content.Value.Examples {
			var shown foundCode
			if json.Unmarshal(example.Value.Value, &shown) == nil && shown.Code != "" {
				found = append(found, shown)
			}
		}
	}
	return found
}

// codesOfSchema are the codes that an error's schema allows, none if it allows all.
func (d *document) codesOfSchema(s schema, depth int) (codes []string) {
	const deepest = 8
	if s = d.resolve(s); depth > deepest {
		return nil
	}
	for _, alternatives := range [][]schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, alternative := range alternatives {
			codes = append(codes, d.codesOfSchema(alternative, depth+1)...)
		}
	}
	for _, member := range s.Properties {
		if member.Name != "code" || baseName(member.Value.Ref) == "ErrorCode" {
			continue
		}
		code := d.resolve(member.Value)
		codes = append(codes, code.Words()...)
		if len(code.Const) > 0 {
			codes = append(codes, strings.Trim(string(code.Const), `"`))
		}
	}
	return codes
}

func (d *document) resolve(s schema) schema {
	if s.Ref != "" {
		s, _ = d.schema(s.Ref) // a reference to nothing fails where the schema is shown
	}
	return s
}
