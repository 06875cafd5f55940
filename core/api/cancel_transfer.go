package api

import (
	"errors"
	"net/http"

	"intents.internal/core/transfer"
)

// cancelTransfer answers POST /v2/transfers/{id}/cancel with the cancelled intent. Cancelling twice is as good as once,
// so that a client may repeat a request whose answer was lost.
func (s *Server) cancelTransfer(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	if _, err := query(r); err != nil {
		return err
	}
	found, err := s.findTransfer(r.Context(), by.AccountID, r.PathValue("id"))
	if err != nil {
		return err
	}
	intent, err := s.Store.Transition(r.Context(), by.AccountID, found.ID, transfer.Cause{Trigger: transfer.Cancel})
	again := errors.Is(err, transfer.ErrTransition) && intent.Status == transfer.Cancelled
	if err != nil && !again {
		return err
	}
	record, err := newIntentJSON(intent)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, record)
}
