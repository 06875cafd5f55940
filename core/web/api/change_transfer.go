package api

import (
	"fmt"
	"net/http"

	"intents.internal/core/intent/transfer"
)

// change applies a request to an intent and returns the changed intent.
type change func(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error)

// changeTransfer serves every route that changes an intent. It responds with 404 to an intent of another account, with 403 if the
// key is not of the source chain's environment, and otherwise with the whole record.
func (s *Server) changeTransfer(apply change) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		by, intent, err := s.requestedTransfer(r)
		if err != nil {
			return err
		}
		source, known := s.Registry.Current().Chain(intent.Source.Account.Chain)
		if !known {
			return fmt.Errorf("change transfer %s: its source chain %s is not in the registry", intent.ID, intent.Source.Account.Chain)
		}
		if source.Environment != by.Environment {
			return chainNotAllowed(source, by.Environment)
		}
		if intent, err = apply(r, intent); err != nil {
			return err
		}
		return s.writeIntent(w, r, intent)
	}
}
