package console

import (
	"errors"
	"net/http"
	"strings"

	"intents.internal/core/intent/transfer"
)

const userOperationHint = " The hash of a user operation is no transaction hash: report the transaction that its bundler sent."

var (
	errHash = pageError{
		status: http.StatusBadRequest, Field: "hash", Text: "A transaction hash is 0x and 64 hexadecimal digits.", correctable: true,
	}
	errCarried = pageError{
		status: http.StatusConflict, Field: "hash", Text: "Another transaction has carried this intent." + userOperationHint, correctable: true,
	}
	errTooManyAttempts = pageError{
		status: http.StatusConflict, Field: "hash", correctable: true,
		Text: "As many transactions as an intent can have were reported for this one." + userOperationHint,
	}
)

// reportTransaction answers POST /console/transfers/{id}/transaction: it records the hash of a transaction that was sent for the
// intent. It is idempotent, so the form needs no token.
func (c *console) reportTransaction(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "hash")
	if err != nil {
		return err
	}
	intent, err := c.transferOf(r, user)
	if err != nil {
		return err
	}
	if f.ok() {
		if err := f.note(c.recordTransaction(r, intent, strings.TrimSpace(f.values["hash"]))); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderTransfer(w, r, user, intent, f)
	}
	redirect(w, r, parentPath(r.URL.Path)+"?done=reported")
	return nil
}

func (c *console) recordTransaction(r *http.Request, intent *transfer.Intent, given string) error {
	hash, ok := transfer.ParseHash(given)
	if !ok {
		return errHash
	}
	reported, added, err := c.Store.ReportTransaction(r.Context(), intent.AccountID, intent.ID, hash)
	switch {
	case errors.Is(err, transfer.ErrTransition) && !reported.Executed():
		return errTooManyAttempts
	case errors.Is(err, transfer.ErrTransition):
		return errCarried
	case err != nil:
		return err
	}
	if added && c.Reported != nil {
		c.Reported(intent.Source.Account.Chain, intent.AccountID, intent.ID, hash)
	}
	return nil
}
