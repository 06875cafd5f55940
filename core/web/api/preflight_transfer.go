package api

import (
	"net/http"

	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

type preflightJSON struct {
	OK     bool        `json:"ok"`
	Checks []checkJSON `json:"checks"`
	// Gas is nil if a call would fail or its gas is not known.
	Gas *string `json:"gas"`
}

type checkJSON struct {
	Name    transfer.CheckName `json:"name"`
	OK      bool               `json:"ok"`
	Needed  bool               `json:"needed,omitzero"`
	Unknown bool               `json:"unknown,omitzero"`
	Detail  string             `json:"detail"`
}

// preflightTransfer answers GET /v2/transfers/{id}/preflight with a simulation of exactly the calls of tx.calls.
func (s *Server) preflightTransfer(w http.ResponseWriter, r *http.Request) error {
	intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	preflight, err := s.Intents.Preflight(r.Context(), intent, transfer.AllSteps)
	if err != nil {
		return err
	}
	answer := preflightJSON{OK: true, Gas: preflight.Gas}
	for _, c := range preflight.Checks {
		answer.OK = answer.OK && c.OK
		answer.Checks = append(answer.Checks, checkJSON(c))
	}
	return route.WriteJSON(w, http.StatusOK, answer)
}
