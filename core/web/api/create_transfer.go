package api

import (
	"net/http"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/wire"
)

// createTransfer answers POST /v2/transfers with the new intent. Errors are checked in the order 413, 415, 400, 403, 422.
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
	key, err := parseIdempotency(r, by, request)
	if err != nil {
		return err
	}
	if wrong, ok := transfer.WrongEnvironment(request, s.Registry.Current(), by.Environment); ok {
		return chainNotAllowed(wrong, by.Environment)
	}
	now := s.Store.Now()
	id := transfer.NewID(now)
	intent, err := s.Store.RecordTransfer(r.Context(), id, by, request, s.Registry.Current(), key)
	if err != nil {
		return err
	}
	if s.Created != nil {
		s.Created(intent)
	}
	record, err := newRecord(intent.AsCreated(), now)
	if err != nil {
		return err
	}
	if intent.ID != id { // an earlier request with the same key created it
		w.Header().Set("Idempotent-Replayed", "true")
		// The record is that of the first response, but without the transaction if the intent has changed since: it must not be
		// sent any more.
		if record.tx, err = intent.TxOf(&record.order, now); err != nil {
			return err
		}
	}
	w.Header().Set("Location", "/v2/transfers/"+intent.ID.String())
	record.write(w, http.StatusCreated)
	return nil
}

// parseIdempotency reads the Idempotency-Key header.
func parseIdempotency(r *http.Request, by transfer.Caller, request wire.TransferRequest) (postgres.Idempotency, error) {
	key, err := idempotencyKey(r)
	if key == "" || err != nil {
		return postgres.Idempotency{}, err
	}
	return postgres.Idempotency{Key: key, Environment: by.Environment, Request: request}, nil
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
