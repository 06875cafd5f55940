package api

import (
	"errors"
	"net/http"

	"intents.internal/core/intent/transfer"
)

// cancelTransfer is the change of POST /v2/transfers/{id}/cancel. It is idempotent, so that a client may repeat a request
// whose response was lost.
func (s *Server) cancelTransfer(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	cancelled, err := s.Store.Transition(r.Context(), intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Cancel})
	if errors.Is(err, transfer.ErrTransition) && cancelled.Status == transfer.Cancelled {
		err = nil
	}
	return cancelled, err
}
