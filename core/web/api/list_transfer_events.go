package api

import (
	"net/http"

	"intents.internal/core/intents"
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
	body := newBuffer()
	defer body.release()
	if body.json, err = appendEvents(append(body.json, '{'), events); err != nil {
		return err
	}
	body.json = append(body.json, '}')
	writeBody(w, http.StatusOK, body.json)
	return nil
}
