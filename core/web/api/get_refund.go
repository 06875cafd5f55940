package api

import (
	"net/http"

	"intents.internal/core/transfer"
)

// getRefund answers GET /v2/transfers/{id}/refund with the transaction that refunds an order.
func (s *Server) getRefund(w http.ResponseWriter, r *http.Request) error {
	intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	tx, err := s.Intents.Refund(r.Context(), intent)
	if err != nil {
		return err
	}
	body := newBuffer()
	defer body.release()
	body.json = append(transfer.AppendTx(append(body.json, `{"tx":`...), tx), '}')
	writeBody(w, http.StatusOK, body.json)
	return nil
}
