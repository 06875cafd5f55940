package api

import (
	"net/http"
	"strings"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// patternCreateBatch is the route of batches of intents, and PathCreateBatch its path.
const (
	PathCreateBatch    = "/v2/transfers/batch"
	patternCreateBatch = http.MethodPost + " " + PathCreateBatch
)

// createBatch answers POST /v2/transfers/batch with the new intents, all of them or none. Errors are checked in the order 413, 415, 400, 403, 422.
func (s *Server) createBatch(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	body, err := route.ReadBodyUpTo(r, wire.MaxTransferBatchBytes)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	requests, issues := wire.DecodeTransferBatch(body)
	if len(issues) > 0 {
		return route.Invalid(issues...)
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if key == "" {
		return &route.Error{Status: http.StatusBadRequest, Body: wire.NewIdempotencyKeyRequired()}
	}
	record, replayed, err := s.Intents.CreateBatch(r.Context(), by, requests, key)
	if err != nil {
		return err
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	} else {
		route.Committed(w)
	}
	w.Header().Set("Location", "/v2/batches/"+record.ID.String())
	writeBatchRecord(w, record, prefersMinimal(r.Header))
	return nil
}

// writeBatchRecord writes the response to a new batch, with the summaries of its intents instead of their records if minimal is set.
func writeBatchRecord(w http.ResponseWriter, record *intents.BatchRecord, minimal bool) {
	body := route.NewBuffer()
	defer body.Release()
	if minimal {
		w.Header().Set("Preference-Applied", returnMinimal)
	}
	b := appendBatch(body.Bytes, record.Batch)
	b = append(b, `,"transfers":[`...)
	for n, one := range record.Transfers {
		if n > 0 {
			b = append(b, ',')
		}
		if minimal {
			summary := one.Intent.Summary()
			b = transfer.AppendSummary(b, &summary)
		} else {
			b = appendRecord(b, one)
		}
	}
	b = append(b, `]}`...)
	body.Bytes = b
	route.WriteBody(w, http.StatusCreated, body.Bytes)
}

// returnMinimal is the preference for a short response (RFC 7240 section 4.2).
const returnMinimal = "return=minimal"

// prefersMinimal reports whether the request prefers a short response. Parameters of a preference and unknown preferences mean nothing.
func prefersMinimal(h http.Header) bool {
	for _, line := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			token, value, _ := strings.Cut(name, "=")
			if strings.EqualFold(strings.TrimSpace(token), "return") {
				return strings.EqualFold(strings.Trim(strings.TrimSpace(value), `"`), "minimal") // the first counts
			}
		}
	}
	return false
}
