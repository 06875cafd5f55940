package settings

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// SyntaxErrorLine returns the line of a JSON text at which decoding it failed, 1 for an error that is not of its syntax. The error's own text may
// quote the file, which can hold secrets.
func SyntaxErrorLine(text []byte, err error) int {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return 1
	}
	return 1 + bytes.Count(text[:syntax.ByteOffset], []byte("\n"))
}
