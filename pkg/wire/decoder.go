package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder walks one JSON document and gathers what is wrong with it. After a syntax error every call does nothing.
type decoder struct {
	in     *jsontext.Decoder
	issues []Issue
	broken bool
}

func newDecoder(body []byte) *decoder {
	return &decoder{in: jsontext.NewDecoder(bytes.NewReader(body))}
}

// object reads one object, calling the field's function at the value of each name.
func (d *decoder) object(fields map[string]func(), required ...string) {
	if d.broken {
		return
	}
	if d.in.PeekKind() != '{' {
		d.skip("must be an object")
		return
	}
	parent := d.in.StackPointer()
	if !d.next() {
		return
	}
	seen := make([]string, 0, len(fields))
	for !d.broken && d.in.PeekKind() == '"' {
		token, ok := d.token()
		if !ok {
			return
		}
		name := token.String()
		seen = append(seen, name)
		if read, known := fields[name]; known {
			read()
		} else {
			d.skip("is not a known field")
		}
	}
	if !d.next() {
		return
	}
	for _, name := range required {
		if !slices.Contains(seen, name) {
			d.issues = append(d.issues, Issue{Path: string(parent.AppendToken(name)), Message: "is required"})
		}
	}
}

// text reads one string. A NUL is refused here because no text column can hold it.
func (d *decoder) text() (string, bool) {
	if d.broken {
		return "", false
	}
	if d.in.PeekKind() != '"' {
		d.skip("must be a string")
		return "", false
	}
	token, ok := d.token()
	if !ok {
		return "", false
	}
	text := token.String()
	if strings.IndexByte(text, 0) >= 0 {
		d.issue("must not hold a NUL character")
		return "", false
	}
	return text, true
}

// issue blames the value that was read last.
func (d *decoder) issue(message string) {
	d.issues = append(d.issues, Issue{Path: string(d.in.StackPointer()), Message: message})
}

// skip passes over the next value and blames it.
func (d *decoder) skip(message string) {
	if err := d.in.SkipValue(); err != nil {
		d.fail(err)
		return
	}
	d.issue(message)
}

func (d *decoder) next() bool {
	_, ok := d.token()
	return ok
}

func (d *decoder) token() (jsontext.Token, bool) {
	token, err := d.in.ReadToken()
	if err != nil {
		d.fail(err)
		return jsontext.Token{}, false
	}
	return token, true
}

// finish checks that nothing follows the document.
func (d *decoder) finish() []Issue {
	if d.broken {
		return d.issues
	}
	if _, err := d.in.ReadToken(); err == nil {
		d.fail(errors.New("a second JSON value follows the first"))
	} else if !errors.Is(err, io.EOF) {
		d.fail(err)
	}
	return d.issues
}

// fail ends the walk. What was found before the break is dropped: it may be an effect of it.
func (d *decoder) fail(err error) {
	d.broken = true
	issue := Issue{Message: "is not one valid JSON object: " + err.Error()}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		issue = Issue{Message: "is given twice"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		issue = Issue{Message: "is not one valid JSON object: it ends too early"}
	case errors.As(err, &syntax):
		issue = Issue{Message: fmt.Sprintf("is not valid JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)}
	}
	if errors.As(err, &syntax) {
		issue.Path = string(syntax.JSONPointer)
	}
	d.issues = []Issue{issue}
}
