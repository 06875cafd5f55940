package api

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// nullable is a field whose schema has null, and distinguishes null from an absent field. Null in every other field is refused, see
// readMember.
type nullable[T any] struct {
	given bool
	value *T
}

// UnmarshalJSONFrom reads a value or null.
func (n *nullable[T]) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	n.given = true
	if from.PeekKind() == 'n' {
		return from.SkipValue()
	}
	n.value = new(T)
	return json.UnmarshalDecode(from, n.value)
}

func (*nullable[T]) takesNull() {}

// get returns the zero value for null and for an absent field.
func (n *nullable[T]) get() (value T) {
	if n.value != nil {
		value = *n.value
	}
	return value
}

// orZero returns nil for an absent field, and a pointer to the zero value for null.
func (n *nullable[T]) orZero() *T {
	if n.given && n.value == nil {
		return new(T)
	}
	return n.value
}
