package apierror

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
)

// QuoteFailures are the details of NO_QUOTE and QUOTES_UNAVAILABLE.
type QuoteFailures struct {
	Failures []QuoteFailure `json:"failures"`
}

// QuoteFailure is a provider without a quote.
type QuoteFailure struct {
	Provider string            `json:"provider"`
	Code     quote.FailureCode `json:"code"`
}

// NewQuoteFailures is never nil, so that it is written as [] and not as null.
func NewQuoteFailures(failures []quote.Failure) []QuoteFailure {
	list := make([]QuoteFailure, len(failures))
	for n, f := range failures {
		list[n] = QuoteFailure(f)
	}
	return list
}

// UsedQuote are the details of QUOTE_USED.
type UsedQuote struct {
	// TransferID is the intent that the quote has made.
	TransferID uuid.UUID `json:"transferId"`
}

// ofQuotes is Of for the errors of quotes that have details.
func ofQuotes(err error) (public Error, ok bool) {
	if none, ok := errors.AsType[*quotes.NoQuoteError](err); ok {
		return Error{
			Status: http.StatusNotFound, Code: "NO_QUOTE", Details: QuoteFailures{NewQuoteFailures(none.Failures)},
			Message: "No provider has a quote for this; see details.failures. Ask for another amount or another token, or try again later.",
			Page:    correctable("", "No provider has a quote for this. Give the other amount instead, or both, or try again later."),
		}, true
	}
	if unavailable, ok := errors.AsType[*quotes.UnavailableError](err); ok {
		return Error{
			Status: http.StatusServiceUnavailable, Code: "QUOTES_UNAVAILABLE", RetryAfter: max(unavailable.RetryAfter, time.Second),
			Details: QuoteFailures{NewQuoteFailures(unavailable.Failures)},
			Message: "No provider of quotes answers; see details.failures. Wait as long as Retry-After says, then ask again.",
			Page:    correctable("", "No provider of quotes answers at this moment. Try again in a few seconds, or give both amounts yourself."),
		}, true
	}
	if used, ok := errors.AsType[*quotes.UsedError](err); ok {
		return Error{
			Status: http.StatusConflict, Code: "QUOTE_USED", Details: UsedQuote{used.TransferID},
			Message: fmt.Sprintf("The quote has made the transfer %s, and makes no other. Read that one, or ask for a new quote.", used.TransferID),
			Page:    Page{Title: "Used already", Text: "A transfer was made of this quote, and a quote makes only one. It is in the list of transfers. Ask for a new quote for another one."},
		}, true
	}
	return Error{}, false
}
