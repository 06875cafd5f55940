package api

import (
	"net/http"

	"intents.internal/core/chains/onchain"
	"intents.internal/core/intent/representation"
	"intents.internal/core/intent/transfer"
)

// getRefund answers GET /v2/transfers/{id}/refund with the transaction that refunds an order.
func (s *Server) getRefund(w http.ResponseWriter, r *http.Request) error {
	_, intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	history, err := s.Store.TransferHistory(r.Context(), intent)
	if err != nil {
		return err
	}
	if !intent.Refundable(history) {
		return transfer.ErrNotRefundable
	}
	tx, err := onchain.Refund(r.Context(), s.Chains, intent)
	if err != nil {
		return err
	}
	body := newBuffer()
	defer body.release()
	body.json = append(representation.AppendTx(append(body.json, `{"tx":`...), tx), '}')
	writeBody(w, http.StatusOK, body.json)
	return nil
}
