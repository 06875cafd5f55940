package api

import (
	"net/http"

	"intents.internal/core/intents"
	"intents.internal/core/web/route"
)

// listTransferEvents answers GET /v2/transfers/{id}/events with what has happened to an intent of the key's environment, oldest first. One of
// the other environment is not found, as its events are not in the feed of the key.
func (s *Server) listTransferEvents(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	if intent.Environment != by.Environment {
		return intents.ErrTransferNotFound
	}
	events, err := s.Events.TransferEvents(r.Context(), by.AccountID, intent.ID)
	if err != nil {
		return err
	}
	body := route.NewBuffer()
	defer body.Release()
	if body.Bytes, err = appendEvents(append(body.Bytes, '{'), events); err != nil {
		return err
	}
	body.Bytes = append(body.Bytes, '}')
	route.WriteBody(w, http.StatusOK, body.Bytes)
	return nil
}
