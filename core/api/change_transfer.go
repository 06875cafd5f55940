package api

import (
	"fmt"
	"net/http"

	"intents.internal/core/transfer"
)

// change does to an intent what a request asks and returns the intent as it then is.
type change func(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error)

// changeTransfer is the endpoint of every route that changes the intent its path names, so that none can leave out whose
// intent it is, 404, and whether the key is of the source chain's environment, 403. It answers with the whole record.
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
		return s.writeIntent(w, intent)
	}
}
