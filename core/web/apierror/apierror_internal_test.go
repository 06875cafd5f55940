package apierror

import (
	"testing"

	"intents.internal/pkg/testkit/golden"
	"intents.internal/pkg/wire"
)

// The OpenAPI document takes the examples of errors from the recorded bodies.
func TestOf_Bodies(t *testing.T) {
	t.Parallel()
	var bodies []wire.Error
	for _, entry := range errorMap {
		f, ok := Of(entry.err)
		if !ok || f.Code != entry.public.Code || f.Message != entry.public.Message {
			t.Errorf("%v is %+v", entry.err, f)
		}
		bodies = append(bodies, wire.Error{Code: f.Code, Message: f.Message})
	}
	for _, f := range []Error{Unavailable, outcomeUnknown(false), outcomeUnknown(true)} {
		bodies = append(bodies, wire.Error{Code: f.Code, Message: f.Message})
	}
	golden.JSON(t, "testdata/errors.json", bodies)
}
