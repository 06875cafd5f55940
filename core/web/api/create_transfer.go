package api

import (
	"net/http"

	"intents.internal/pkg/wire"
)

// createTransfer answers POST /v2/transfers with the new intent, made from a quote if the body has a quoteId. Errors are checked in the
// order 413, 415, 400, 403, 422.
func (s *Server) createTransfer(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	if _, err := query(r); err != nil {
		return err
	}
	request, issues := wire.DecodeTransferRequest(body)
	if len(issues) > 0 {
		return invalid(issues...)
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	create := s.Intents.Create
	if request.QuoteID != "" {
		create = s.Quotes.Create
	}
	record, replayed, err := create(r.Context(), by, request, key)
	if err != nil {
		return err
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.Header().Set("Location", "/v2/transfers/"+record.Intent.ID.String())
	writeRecord(w, http.StatusCreated, record)
	return nil
}

// idempotencyKey is the key in the Idempotency-Key header, empty for none.
func idempotencyKey(r *http.Request) (string, error) {
	given := r.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return "", nil
	}
	key, ok := wire.ParseIdempotencyKey(given[0])
	if !ok || len(given) > 1 {
		return "", invalid(wire.Issue{Path: "Idempotency-Key", Message: wire.IdempotencyKeyRule})
	}
	return key, nil
}
