package console

import (
	"net/http"
	"strings"

	"intents.internal/core/intent/transfer"
)

var errHash = pageError{
	status: http.StatusBadRequest, Field: "hash", Text: "A transaction hash is 0x and 64 hexadecimal digits.", correctable: true,
}

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
		hash, ok := transfer.ParseHash(strings.TrimSpace(f.values["hash"]))
		if err = errHash; ok {
			_, err = c.Intents.Report(r.Context(), intent, hash)
		}
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderTransfer(w, r, user, intent, f)
	}
	redirect(w, r, parentPath(r.URL.Path)+"?done=reported")
	return nil
}
