package api

import (
	"net/http"

	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

// getTransfer answers GET /v2/transfers/{id} with the full record; id is the intent's UUID or its order id. Another account's
// intent gets the same response as one that does not exist.
func (s *Server) getTransfer(w http.ResponseWriter, r *http.Request) error {
	intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	return s.writeIntent(w, r, intent)
}

// requestedTransfer returns the caller's intent that the path identifies.
func (s *Server) requestedTransfer(r *http.Request) (*transfer.Intent, error) {
	by, err := caller(r)
	if err != nil {
		return nil, err
	}
	if _, err := route.Query(r); err != nil {
		return nil, err
	}
	return s.Intents.Find(r.Context(), by.AccountID, r.PathValue("id"))
}

// writeIntent writes the current record.
func (s *Server) writeIntent(w http.ResponseWriter, r *http.Request, intent *transfer.Intent) error {
	record, err := s.Intents.Record(r.Context(), intent)
	if err != nil {
		return err
	}
	writeRecord(w, http.StatusOK, record)
	return nil
}
