package api

import (
	"net/http"

	"intents.internal/core/transfer"
)

// getRelay answers GET /v2/transfers/{id}/relay with the transaction of a signed intent, which any account can send.
func (s *Server) getRelay(w http.ResponseWriter, r *http.Request) error {
	intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	tx, err := s.Intents.Relay(r.Context(), intent)
	if err != nil {
		return err
	}
	body := newBuffer()
	defer body.release()
	body.json = append(transfer.AppendRelayTx(append(body.json, `{"tx":`...), tx), '}')
	writeBody(w, http.StatusOK, body.json)
	return nil
}
