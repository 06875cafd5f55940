package api

import (
	"net/http"

	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
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
	body := route.NewBuffer()
	defer body.Release()
	body.Bytes = append(transfer.AppendTx(append(body.Bytes, `{"tx":`...), tx), '}')
	route.WriteBody(w, http.StatusOK, body.Bytes)
	return nil
}
