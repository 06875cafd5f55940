package apierror

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
	stored "intents.internal/core/store/quotes"
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
	failures := []quote.Failure{{Provider: "lifi", Code: quote.ProviderTimeout}, {Provider: "solver", Code: quote.NoQuote}}
	for _, err := range []error{
		&quotes.NoQuoteError{Failures: failures}, &quotes.UnavailableError{Failures: failures[:1]},
		&stored.UsedError{TransferID: uuid.MustParse("01a1fc6f-ce9b-7799-b600-a8d5f5a6c3a9")},
	} {
		f, _ := Of(err)
		bodies = append(bodies, wire.Error{Code: f.Code, Message: f.Message, Details: f.Details})
	}
	for _, f := range []Error{Unavailable, outcomeUnknown(false), outcomeUnknown(true)} {
		bodies = append(bodies, wire.Error{Code: f.Code, Message: f.Message})
	}
	golden.JSON(t, "testdata/errors.json", bodies)
}
