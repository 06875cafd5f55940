package api

import (
	"net/http"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// createTransfer answers POST /v2/transfers with the new intent, made from a quote if the body has a quoteId. Errors are checked in the
// order 413, 415, 400, 403, 422.
func (s *Server) createTransfer(w http.ResponseWriter, r *http.Request) error {
	c, err := readCreateRequest(r)
	if err != nil {
		return err
	}
	return s.createFrom(w, r, c)
}

// PathCreate and PatternCreate are the path and the route of new intents.
const (
	PathCreate    = "/v2/transfers"
	PatternCreate = http.MethodPost + " " + PathCreate
)

// CreateTransfer is the route of new intents.
func (s *Server) CreateTransfer() route.Route {
	return route.Route{Pattern: PatternCreate, Endpoint: s.createTransfer, Fallback: transferFallback, Idempotent: true}
}

// PrepareTransfer makes the insert for a request of CreateTransfer that has come with others; its result goes to results. It returns an
// endpoint instead for a request that is refused or repeated, or uses a quote.
func (s *Server) PrepareTransfer(r *http.Request, results chan<- intents.Result) (creation *intents.Creation, alone route.Endpoint, err error) {
	c, err := readCreateRequest(r)
	if err != nil {
		return nil, nil, err
	}
	if c.request.QuoteID == "" {
		if creation, err = s.Intents.Prepare(r.Context(), c.by, c.request, c.key, results); err == nil {
			return creation, nil, nil
		}
	}
	return nil, func(w http.ResponseWriter, r *http.Request) error { return s.createFrom(w, r, c) }, nil
}

// FinishTransfer answers a request that PrepareTransfer has made the insert for.
func (s *Server) FinishTransfer(creation *intents.Creation, result intents.Result) route.Endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		record, replayed, err := s.Intents.Finish(r.Context(), creation, result)
		if err == nil {
			writeCreated(w, record, replayed)
		}
		return err
	}
}

// createRequest is a request to create an intent, with its idempotency key, empty for none.
type createRequest struct {
	by      transfer.Caller
	request wire.TransferRequest
	key     string
}

func readCreateRequest(r *http.Request) (c createRequest, err error) {
	if c.by, err = caller(r); err != nil {
		return c, err
	}
	body, err := route.ReadBody(r)
	if err != nil {
		return c, err
	}
	if _, err := route.Query(r); err != nil {
		return c, err
	}
	var issues []wire.Issue
	if c.request, issues = wire.DecodeTransferRequest(body); len(issues) > 0 {
		return c, route.Invalid(issues...)
	}
	c.key, err = idempotencyKey(r)
	return c, err
}

func (s *Server) createFrom(w http.ResponseWriter, r *http.Request, c createRequest) error {
	var record *intents.Record
	var replayed bool
	var err error
	if c.request.QuoteID != "" {
		record, replayed, err = s.Quotes.Create(r.Context(), access.OfKey(c.by.AccountID), c.by, c.request, c.key)
	} else {
		record, replayed, err = s.Intents.Create(r.Context(), c.by, c.request, c.key)
	}
	if err == nil {
		writeCreated(w, record, replayed)
	}
	return err
}

func writeCreated(w http.ResponseWriter, record *intents.Record, replayed bool) {
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	} else {
		route.Committed(w)
	}
	w.Header().Set("Location", "/v2/transfers/"+record.Intent.ID.String())
	writeRecord(w, http.StatusCreated, record)
}

// idempotencyKey is the key in the Idempotency-Key header, empty for none.
func idempotencyKey(r *http.Request) (string, error) {
	given := r.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return "", nil
	}
	key, ok := wire.ParseIdempotencyKey(given[0])
	if !ok || len(given) > 1 {
		return "", route.Invalid(wire.Issue{Path: "Idempotency-Key", Message: wire.IdempotencyKeyRule})
	}
	return key, nil
}
