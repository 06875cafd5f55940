package outbound

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrTooManyElements is what DecodeList returns for a list of more elements than are wanted.
var ErrTooManyElements = errors.New("the list has more elements than are wanted")

// DecodeList reads a JSON list and gives each element to decode, which reads exactly one value. It stops at the first error, and with
// ErrTooManyElements before element number most: memory follows what decode keeps, however small the elements that a service sends.
func DecodeList(decoder *jsontext.Decoder, most int, decode func() error) error {
	token, err := decoder.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '[' {
		return errors.New("is no list")
	}
	for n := 0; decoder.PeekKind() != ']'; n++ {
		if n == most {
			return ErrTooManyElements
		}
		if err := decode(); err != nil {
			return err
		}
	}
	_, err = decoder.ReadToken()
	return err
}
