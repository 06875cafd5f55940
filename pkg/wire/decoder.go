package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder parses one JSON document and collects its issues. After a syntax error every call does nothing.
type decoder struct {
	in     jsontext.Decoder
	body   bytes.Reader
	word   []byte // the string that was read last
	issues []Issue
	// most bounds the issues that are kept, 0 for all.
	most   int
	broken bool
}

// decoders pools decoders for their buffers: high-volume clients send many small documents.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder. The caller must call release.
func newDecoder(body []byte) *decoder {
	d := decoders.Get().(*decoder)
	d.body.Reset(body)
	d.in.Reset(&d.body)
	return d
}

func (d *decoder) release() {
	d.body.Reset(nil)
	d.issues, d.most, d.broken = nil, 0, false
	decoders.Put(d)
}

// object parses one object. It calls read at each value, with the index of its name in names. The first required of the names are
// required.
func (d *decoder) object(names []string, required int, read func(n int)) {
	if seen, ok := d.members(names, read); ok {
		d.require(names[:required], seen)
	}
}

// seenNames tells by index which names an object has.
type seenNames [8]bool // no object has more names

// members parses one object as object does, without required names.
func (d *decoder) members(names []string, read func(n int)) (seen seenNames, ok bool) {
	if d.broken {
		return seen, false
	}
	if d.in.PeekKind() != '{' {
		d.skip("must be an object")
		return seen, false
	}
	if !d.next() {
		return seen, false
	}
	for !d.broken && d.in.PeekKind() == '"' {
		if !d.string() {
			return seen, false
		}
		if n := slices.IndexFunc(names, func(name string) bool { return name == string(d.word) }); n >= 0 {
			seen[n] = true
			read(n)
		} else {
			d.skip("is not a known field")
		}
	}
	return seen, d.next()
}

// require reports an issue for each of the names that the object just parsed lacks.
func (d *decoder) require(names []string, seen seenNames) {
	for n, name := range names {
		if !seen[n] {
			d.issueOf(name, "is required")
		}
	}
}

// issueOf reports an issue of a member of the object just parsed.
func (d *decoder) issueOf(name, message string) {
	if !d.hasMost() {
		d.issueAt(d.in.StackPointer().AppendToken(name), message)
	}
}

// array parses one array. It calls read at each of the first most values and skips the others. ok is false if there is no array.
func (d *decoder) array(most int, read func()) (count int, ok bool) {
	if d.broken {
		return 0, false
	}
	if d.in.PeekKind() != '[' {
		d.skip("must be an array")
		return 0, false
	}
	if !d.next() {
		return 0, false
	}
	for ; !d.broken && d.in.PeekKind() != ']'; count++ {
		if count < most {
			read()
		} else if err := d.in.SkipValue(); err != nil {
			d.fail(err)
		}
	}
	return count, !d.broken && d.next()
}

// text parses one string. It rejects NUL, because no text column can store it.
func (d *decoder) text() (string, bool) {
	if d.broken {
		return "", false
	}
	if d.in.PeekKind() != '"' {
		d.skip("must be a string")
		return "", false
	}
	if !d.string() {
		return "", false
	}
	if bytes.IndexByte(d.word, 0) >= 0 {
		d.issue("must not hold a NUL character")
		return "", false
	}
	return string(d.word), true
}

// string parses the next string, a name or a value, into word.
func (d *decoder) string() bool {
	value, err := d.in.ReadValue()
	if err == nil {
		d.word, err = jsontext.AppendUnquote(d.word[:0], value)
	}
	if err != nil {
		d.fail(err)
	}
	return err == nil
}

// issue reports an issue of the last value.
func (d *decoder) issue(message string) {
	if !d.hasMost() {
		d.issueAt(d.in.StackPointer(), message)
	}
}

func (d *decoder) issueAt(path jsontext.Pointer, message string) {
	d.issues = append(d.issues, Issue{Path: string(path), Message: message})
}

// hasMost reports whether no further issue is kept. Their paths are not worked out either: a short document may have thousands.
func (d *decoder) hasMost() bool { return d.most > 0 && len(d.issues) >= d.most }

// skip skips the next value and reports an issue of it.
func (d *decoder) skip(message string) {
	if err := d.in.SkipValue(); err != nil {
		d.fail(err)
		return
	}
	d.issue(message)
}

// next consumes a brace or bracket.
func (d *decoder) next() bool {
	if _, err := d.in.ReadToken(); err != nil {
		d.fail(err)
		return false
	}
	return true
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

// fail stops the parser. It drops the issues found before, because the syntax error may have caused them.
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
