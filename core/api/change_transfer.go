package api

import (
	"fmt"
	"net/http"

	"intents.internal/core/transfer"
)

// change applies a request to an intent and returns the changed intent.
type change func(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error)

// changeTransfer is the endpoint of every route that changes an intent. It checks that the intent is the caller's, 404, and that the
// key is of the source chain's environment, 403, and answers with the whole record.
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
