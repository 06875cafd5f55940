package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// document is what the page shows of an OpenAPI document.
type document struct {
	Info struct {
		Title, Version, Summary, Description string
	}
	Tags  []tag
	Paths ordered[pathItem]
	// Webhooks are what the service itself sends, by the name of the event.
	Webhooks   ordered[pathItem]
	Components struct {
		Parameters ordered[parameter]
		Headers    ordered[parameter]
		Responses  ordered[response]
		Schemas    ordered[schema]
	}
}

// tag is a group of operations.
type tag struct{ Name, Description string }

type pathItem struct {
	Parameters               []parameter
	Get, Post, Patch, Delete *operation
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Security                          []map[string][]string
	Parameters                        []parameter
	RequestBody                       *struct{ Content ordered[media] }
	Responses                         ordered[response]
}

// parameter is a header too, whose name is its key.
type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     ordered[parameter]
	Content     ordered[media]
}

type media struct {
	Schema   schema
	Examples ordered[example]
}

type example struct {
	Summary string
	Value   json.RawMessage
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 kinds
	Description, Format  string
	Pattern              string
	Const                json.RawMessage
	Default              json.RawMessage
	Enum                 []json.RawMessage
	Minimum, Maximum     json.Number
	MinLength, MaxLength json.Number
	Items                *schema
	OneOf, AnyOf, AllOf  []schema
	Required             []string
	Properties           ordered[schema]
}

// ordered is an object whose members keep their order.
type ordered[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON reads an object.
func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("want an object, have %.20s", text)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		m := member[T]{}
		m.Name, _ = name.(string) // names of members are strings
		if err := decoder.Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		*o = append(*o, m)
	}
	return nil
}

// find is the member that a reference names.
func (o ordered[T]) find(ref string) (found T, err error) {
	for _, m := range o {
		if m.Name == baseName(ref) {
			return m.Value, nil
		}
	}
	return found, fmt.Errorf("the document has no %s", ref)
}

// kinds are the types a value may have; a schema names one or several.
type kinds []string

// UnmarshalJSON reads a name or an array of names.
func (k *kinds) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(k))
	}
	*k = kinds{""}
	return json.Unmarshal(text, &(*k)[0])
}

func (d *document) schema(ref string) (schema, error) { return d.Components.Schemas.find(ref) }

// Kind names what values a schema takes, where it is not a reference or an array.
func (s schema) Kind() string {
	switch {
	case len(s.Const) > 0:
		return "always " + strings.Trim(string(s.Const), `"`)
	case s.Format != "":
		return strings.Join(s.Type, " or ") + ", " + s.Format
	default:
		return strings.Join(s.Type, " or ")
	}
}

// Words are the values a schema lists.
func (s schema) Words() (words []string) {
	for _, word := range s.Enum {
		words = append(words, strings.Trim(string(word), `"`))
	}
	return words
}

// Bounds tells how small, large, short and long a value may be.
func (s schema) Bounds() string {
	var bounds []string
	tell := func(least, most json.Number, unit string) {
		switch {
		case least != "" && most != "":
			bounds = append(bounds, fmt.Sprintf("%s to %s%s", least, most, unit))
		case least != "":
			bounds = append(bounds, fmt.Sprintf("%s%s or more", least, unit))
		case most != "":
			bounds = append(bounds, fmt.Sprintf("at most %s%s", most, unit))
		}
	}
	tell(s.Minimum, s.Maximum, "")
	tell(s.MinLength, s.MaxLength, " characters")
	if len(s.Default) > 0 {
		bounds = append(bounds, "by default "+strings.Trim(string(s.Default), `"`))
	}
	return strings.Join(bounds, "; ")
}

// Requires tells whether an object must have the member.
func (s schema) Requires(name string) bool { return slices.Contains(s.Required, name) }
