package api

import (
	"net/http"

	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
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
	body := route.NewBuffer()
	defer body.Release()
	body.Bytes = append(transfer.AppendRelayTx(append(body.Bytes, `{"tx":`...), tx), '}')
	route.WriteBody(w, http.StatusOK, body.Bytes)
	return nil
}
