package apierror

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"intents.internal/core/intent"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/store/pgtest"
	"intents.internal/core/store/postgres"
	stored "intents.internal/core/store/quotes"
	"intents.internal/pkg/testkit/golden"
	"intents.internal/pkg/wire"
)

// recorded is what clients see of an error.
type recorded struct {
	Body       wire.Error    `json:"body"`
	Status     int           `json:"status"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	Page       Page          `json:"page,omitzero"`
}

// What clients see of every error, with its page of the console. The OpenAPI document takes the examples of errors from the bodies.
func TestOf(t *testing.T) {
	t.Parallel()
	var all []Error
	for _, entry := range errorMap {
		err := entry.err
		if entry.public.Code == "STATUS_CONFLICT" { // whoever returns it says the status
			err = &intent.StatusError{Status: transfer.Confirmed, Err: err}
		}
		f, ok := Of(err)
		if !ok || f.Code != entry.public.Code || f.Message != entry.public.Message {
			t.Errorf("%v is %+v", entry.err, f)
		}
		all = append(all, f)
	}
	failures := []quote.Failure{{Provider: "lifi", Code: quote.ProviderTimeout}, {Provider: "solver", Code: quote.NoQuote}}
	for _, err := range []error{
		&quotes.NoQuoteError{Failures: failures}, &quotes.UnavailableError{Failures: failures[:1]},
		&stored.UsedError{TransferID: uuid.MustParse("01a1fc6f-ce9b-7799-b600-a8d5f5a6c3a9")},
		context.Canceled, &postgres.OutcomeUnknownError{Err: io.EOF}, &postgres.OutcomeUnknownError{Err: io.EOF, Repeatable: true},
	} {
		f, _ := Of(err)
		all = append(all, f)
	}
	var shown []recorded
	for _, f := range all {
		shown = append(shown, recorded{wire.Error{Code: f.Code, Message: f.Message, Details: f.Details}, f.Status, f.RetryAfter, f.Page})
	}
	golden.JSON(t, "testdata/errors.json", shown)
}

// Clients are told to try again whatever Postgres reports, unless the statement is wrong.
func TestOf_EverySQLState(t *testing.T) {
	t.Parallel()
	for state, wrong := range pgtest.SQLStates() {
		public, ok := Of(fmt.Errorf("insert transfer: %w", &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: state}))
		if ok == wrong || ok && (public.Status != http.StatusServiceUnavailable || public.RetryAfter == 0) {
			t.Errorf("%s: %t, %d, try again in %s", state, ok, public.Status, public.RetryAfter)
		}
	}
}
