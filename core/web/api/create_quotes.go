package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"intents.internal/core/identity/access"
	"intents.internal/core/quotes"
	"intents.internal/core/web/apierror"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

type quotesJSON struct {
	// Quotes and Failures are never nil, so that they are written as [] and not as null.
	Quotes   []quoteJSON             `json:"quotes"`
	Failures []apierror.QuoteFailure `json:"failures"`
}

// createQuotes answers POST /v2/quotes with what providers offer for a swap or bridge, the best first. Errors are checked in the order 413,
// 415, 400, 403, 422; providers are named wrongly where nothing else is wrong.
func (s *Server) createQuotes(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	body, err := route.ReadBodyUpTo(r, wire.MaxQuoteRequestBytes)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	request, issues := wire.DecodeQuoteRequest(body)
	if len(issues) > 0 {
		return route.Invalid(issues...)
	}
	if refusal, ok := request.CheckAmounts(); !ok {
		return &route.Error{Status: http.StatusBadRequest, Body: refusal}
	}
	answer, err := s.Quotes.Ask(r.Context(), access.OfKey(by.AccountID), by, request)
	if unknown, ok := errors.AsType[*quotes.UnknownProviderError](err); ok {
		return route.Invalid(unknownProvider(request.Providers, unknown.Name, string(by.Environment)))
	}
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, quotesJSON{route.Each(answer.Quotes, newQuoteJSON), apierror.NewQuoteFailures(answer.Failures)})
}

func unknownProvider(named []string, name, environment string) wire.Issue {
	return wire.Issue{
		Path:    fmt.Sprintf("/providers/%d", slices.Index(named, name)),
		Message: "is not a provider of quotes for " + environment + " keys; leave providers out to ask all",
	}
}
