package console

import (
	"net/http"

	"intents.internal/core/identity/account"
)

// rotateKey answers POST /console/keys/{id}/rotate with the new key, which is shown only once. Sending the form twice changes
// nothing, because the key is already rotated.
func (c *console) rotateKey(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	old, err := c.keyOf(r, user)
	if err != nil {
		return "", err
	}
	grace, err := account.ParseGracePeriod(f.number("gracePeriod"))
	if err != nil {
		return "", err
	}
	key, text, err := c.Identity.Keys.Rotate(r.Context(), c.confirming(r, f), user.principal, old.ID, grace)
	if err != nil {
		return "", err
	}
	p := newKeyPage{Key: key, Text: text.Reveal(), Replaces: old}
	if grace > 0 {
		p.Grace = wait(grace)
	}
	return "", c.renderNewKey(w, r, user, p)
}
