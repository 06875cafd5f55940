package console

import (
	"net/http"
	"slices"

	"intents.internal/core/identity"
	"intents.internal/core/transfer"
)

var errSimulated = pageError{status: http.StatusBadRequest, Field: "status", Text: "Choose one of the statuses.", correctable: true}

// simulateTransfer answers POST /console/transfers/{id}/simulate: it takes an intent of the test environment to a status without a transaction. It is
// idempotent, so the form needs no token.
func (c *console) simulateTransfer(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return "", err
	}
	to := transfer.Status(f.values["status"])
	if !slices.Contains(transfer.SimulatedStatuses, to) {
		return "", errSimulated
	}
	_, err = c.Intents.Simulate(r.Context(), c.Identity.Grant(user.principal, identity.Develop), intent, to)
	return parentPath(r.URL.Path) + "?done=simulated", err
}
