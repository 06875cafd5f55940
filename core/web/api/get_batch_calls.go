package api

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

const (
	// usualMaxCalls is how many calls a wallet takes in one request that says nothing else: MetaMask refuses more.
	usualMaxCalls = 10
	// leastMaxCalls has room for an approval and the call that needs it.
	leastMaxCalls = 2
	// mostMaxCalls is an approval and a call for each of a batch's intents.
	mostMaxCalls = 2 * wire.MaxTransferBatch
)

// getBatchCalls answers GET /v2/batches/{id}/calls with the parameters of wallet_sendCalls that pay for the batch's intents.
func (s *Server) getBatchCalls(w http.ResponseWriter, r *http.Request) error {
	_, transfers, err := s.requestedBatch(r)
	if err != nil {
		return err
	}
	parameters, err := route.Query(r, "max-calls")
	if err != nil {
		return err
	}
	most := usualMaxCalls
	if given, ok := parameters["max-calls"]; ok {
		if most, err = route.WholeNumber(given, leastMaxCalls, mostMaxCalls); err != nil {
			return route.Invalid(wire.Issue{Path: "max-calls", Message: err.Error()})
		}
	}
	requests, excluded, err := s.Intents.BatchCalls(r.Context(), transfers, most)
	if err != nil {
		return err
	}
	body := route.NewBuffer()
	defer body.Release()
	body.Bytes = appendBatchCalls(body.Bytes, requests, excluded)
	route.WriteBody(w, http.StatusOK, body.Bytes)
	return nil
}

func appendBatchCalls(b []byte, requests []transfer.SendCalls, excluded []transfer.Excluded) []byte {
	b = append(b, `{"requests":[`...)
	for n, request := range requests {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendUUIDs(append(b, `{"transfers":`...), request.Transfers)
		b = transfer.AppendSendCalls(append(b, `,"calls":`...), request.Chain, request.From, request.Calls)
		b = append(b, '}')
	}
	b = append(b, `],"excluded":[`...)
	for n, e := range excluded {
		if n > 0 {
			b = append(b, ',')
		}
		b = transfer.AppendUUID(append(b, `{"id":`...), e.ID)
		b = transfer.AppendText(append(b, `,"reason":`...), e.Reason)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func appendUUIDs(b []byte, ids []uuid.UUID) []byte {
	b = append(b, '[')
	for n, id := range ids {
		if n > 0 {
			b = append(b, ',')
		}
		b = transfer.AppendUUID(b, id)
	}
	return append(b, ']')
}
