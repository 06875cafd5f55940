package api

import (
	"net/http"

	"intents.internal/core/transfer"
)

// cancelTransfer is the change of POST /v2/transfers/{id}/cancel.
func (s *Server) cancelTransfer(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	return s.Intents.Cancel(r.Context(), intent)
}
