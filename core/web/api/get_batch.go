package api

import (
	"net/http"
	"strconv"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

// getBatch answers GET /v2/batches/{id} with the summaries of the batch's intents and how many of them are in each status.
func (s *Server) getBatch(w http.ResponseWriter, r *http.Request) error {
	batch, transfers, err := s.requestedBatch(r)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	writeBatch(w, batch, transfers)
	return nil
}

// requestedBatch returns the caller's batch that the path identifies, with its intents. It comes before all other checks of what was sent.
func (s *Server) requestedBatch(r *http.Request) (*intents.Batch, []*transfer.Intent, error) {
	by, err := caller(r)
	if err != nil {
		return nil, nil, err
	}
	return s.Intents.FindBatch(r.Context(), by.AccountID, by.Environment, r.PathValue("id"))
}

// writeBatch writes a batch as it is now.
func writeBatch(w http.ResponseWriter, batch *intents.Batch, transfers []*transfer.Intent) {
	body := route.NewBuffer()
	defer body.Release()
	b := appendBatch(body.Bytes, batch)
	b = append(b, `,"statuses":{`...)
	for n, c := range intents.CountStatuses(transfers) {
		if n > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(transfer.AppendText(b, c.Status), ':'), int64(c.Count), 10)
	}
	b = append(b, `},"transfers":[`...)
	for n, intent := range transfers {
		if n > 0 {
			b = append(b, ',')
		}
		summary := intent.Summary()
		b = transfer.AppendSummary(b, &summary)
	}
	b = append(b, `]}`...)
	body.Bytes = b
	route.WriteBody(w, http.StatusOK, body.Bytes)
}

// appendBatch appends the first members of a batch, with the object's opening brace.
func appendBatch(b []byte, batch *intents.Batch) []byte {
	b = append(b, `{"id":`...)
	b = transfer.AppendUUID(b, batch.ID)
	b = append(b, `,"createdAt":`...)
	b = transfer.AppendTimestamp(b, batch.CreatedAt)
	b = append(b, `,"count":`...)
	return strconv.AppendInt(b, int64(batch.Count), 10)
}
