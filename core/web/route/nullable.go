package route

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Nullable is a field whose schema has null, and distinguishes null from an absent field. Null in every other field is refused, see
// readMember.
type Nullable[T any] struct {
	Given bool
	Value *T
}

// UnmarshalJSONFrom reads a value or null.
func (n *Nullable[T]) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	n.Given = true
	if from.PeekKind() == 'n' {
		return from.SkipValue()
	}
	n.Value = new(T)
	return json.UnmarshalDecode(from, n.Value)
}

func (*Nullable[T]) takesNull() {}

// Get returns the zero value for null and for an absent field.
func (n *Nullable[T]) Get() (value T) {
	if n.Value != nil {
		value = *n.Value
	}
	return value
}

// OrZero returns nil for an absent field, and a pointer to the zero value for null.
func (n *Nullable[T]) OrZero() *T {
	if n.Given && n.Value == nil {
		return new(T)
	}
	return n.Value
}
