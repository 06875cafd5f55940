package console

import (
	"net/http"
	"strings"

	"intents.internal/core/identity"
	"intents.internal/core/transfer"
)

var errHash = pageError{
	status: http.StatusBadRequest, Field: "hash", Text: "A transaction hash is 0x and 64 hexadecimal digits.", correctable: true,
}

// reportTransaction answers POST /console/transfers/{id}/transaction: it records the hash of a transaction that was sent for the
// intent. It is idempotent, so the form needs no token.
func (c *console) reportTransaction(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return "", err
	}
	hash, ok := transfer.ParseHash(strings.TrimSpace(f.values["hash"]))
	if !ok {
		return "", errHash
	}
	_, err = c.Intents.Report(r.Context(), c.Identity.Grant(user.principal, identity.Develop), intent, hash)
	return parentPath(r.URL.Path) + "?done=reported", err
}
