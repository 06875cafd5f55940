package api

import (
	"net/http"
	"slices"
	"strings"

	"intents.internal/core/identity/access"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// simulateTransfer is the change of POST /v2/transfers/{id}/simulate: it takes an intent of the test environment to a status without a transaction.
func (s *Server) simulateTransfer(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	request, err := route.Decode[struct {
		Status *string `json:"status"`
	}](r)
	if err != nil {
		return nil, err
	}
	to, issues := parseSimulated(request.Status)
	if len(issues) > 0 {
		return nil, route.Invalid(issues...)
	}
	return s.Intents.Simulate(r.Context(), access.OfKey(intent.AccountID), intent, to)
}

// parseSimulated parses the member status of a simulation.
func parseSimulated(given *string) (to transfer.Status, issues []wire.Issue) {
	if given == nil {
		return "", []wire.Issue{{Path: "/status", Message: "is required"}}
	}
	to = transfer.Status(*given)
	if !slices.Contains(transfer.SimulatedStatuses, to) {
		return "", []wire.Issue{{Path: "/status", Message: "must be one of " + joinTexts(transfer.SimulatedStatuses)}}
	}
	return to, nil
}

// joinTexts lists texts with commas between them.
func joinTexts[Text ~string](texts []Text) string {
	plain := make([]string, len(texts))
	for n, text := range texts {
		plain[n] = string(text)
	}
	return strings.Join(plain, ", ")
}
