package console

import (
	"net/http"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
)

// rotateKey answers POST /console/keys/{id}/rotate with the new key, which is shown only once. Sending the form twice changes
// nothing, because the key is already rotated.
func (c *console) rotateKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "gracePeriod", "password")
	if err != nil {
		return err
	}
	old, err := c.keyOf(r, user)
	if err != nil {
		return err
	}
	var key *account.Key
	var text apikey.Key
	var grace time.Duration
	if f.ok() {
		grace, err = account.ParseGracePeriod(f.number("gracePeriod"))
		if err == nil {
			key, text, err = c.Identity.RotateKey(r.Context(), c.confirming(r, f), user.principal, old.ID, grace)
		}
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderKey(w, r, user, f)
	}
	p := newKeyPage{Key: key, Text: text.Reveal(), Replaces: old}
	if grace > 0 {
		p.Grace = wait(grace)
	}
	return c.renderNewKey(w, r, user, p)
}
