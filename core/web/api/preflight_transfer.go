package api

import (
	"net/http"

	"intents.internal/core/intent/transfer"
)

type preflightJSON struct {
	OK     bool        `json:"ok"`
	Checks []checkJSON `json:"checks"`
	// Gas is nil if the transaction would fail.
	Gas *string `json:"gas"`
}

type checkJSON struct {
	Name   transfer.CheckName `json:"name"`
	OK     bool               `json:"ok"`
	Detail string             `json:"detail"`
}

// preflightTransfer answers GET /v2/transfers/{id}/preflight with a simulation of the intent's transaction in the current state.
func (s *Server) preflightTransfer(w http.ResponseWriter, r *http.Request) error {
	intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	preflight, err := s.Intents.Preflight(r.Context(), intent)
	if err != nil {
		return err
	}
	answer := preflightJSON{OK: true, Gas: preflight.Gas}
	for _, c := range preflight.Checks {
		answer.OK = answer.OK && c.OK
		answer.Checks = append(answer.Checks, checkJSON(c))
	}
	return writeJSON(w, http.StatusOK, answer)
}
