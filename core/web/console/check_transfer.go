package console

import (
	"net/http"

	"intents.internal/core/transfer"
)

// checkTransfer answers GET /console/transfers/{id}/preflight with what would happen if send.js sent the intent's transaction now. The page of
// the intent shows the same list where scripts run.
func (c *console) checkTransfer(w http.ResponseWriter, r *http.Request, user currentUser) error {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return err
	}
	preflight, err := c.Intents.Preflight(r.Context(), intent, transfer.NeededSteps)
	if err != nil {
		return err
	}
	return c.render(w, r, user, "preflight", view{Title: "Before sending", Section: "transfers", Of: intent.Environment, Body: map[string]any{
		"ID": intent.ID, "Title": titleOf(intent, c.legView(intent.Source)), "Checks": preflight.Checks, "Gas": preflight.Gas,
	}})
}

// showRefund answers GET /console/transfers/{id}/refund with the transaction that refunds the intent's order on its source chain.
func (c *console) showRefund(w http.ResponseWriter, r *http.Request, user currentUser) error {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return err
	}
	tx, err := c.Intents.Refund(r.Context(), intent)
	if err != nil {
		return err
	}
	sending, err := c.sendView(intent, tx)
	if err != nil {
		return err
	}
	sending.Purpose = "refund"
	source := c.legView(intent.Source)
	return c.render(w, r, user, "refund", view{Title: "Refund", Section: "transfers", Of: intent.Environment, Body: map[string]any{
		"Intent": intent, "Title": titleOf(intent, source), "Source": source, "Send": sending,
	}})
}
