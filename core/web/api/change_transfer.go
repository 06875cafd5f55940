package api

import (
	"net/http"

	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

// change applies a request to an intent and returns the changed intent.
type change func(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error)

// changeTransfer serves every route that changes an intent. It responds with 404 to an intent of another account, with 403 if the
// key is not of the source chain's environment, and otherwise with the whole record.
func (s *Server) changeTransfer(apply change) route.Endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		by, err := caller(r)
		if err != nil {
			return err
		}
		if _, err := route.Query(r); err != nil {
			return err
		}
		intent, err := s.Intents.FindForChange(r.Context(), by, r.PathValue("id"))
		if err != nil {
			return err
		}
		if intent, err = apply(r, intent); err != nil {
			return err
		}
		return s.writeIntent(w, r, intent)
	}
}
