package console

import (
	"net/http"

	"intents.internal/core/identity"
)

// confirmDeleteKey answers GET /console/keys/{id}/delete with a page that names the key and asks for confirmation.
func (c *console) confirmDeleteKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	key, err := c.keyOf(r, user)
	if err != nil {
		return err
	}
	return c.render(w, r, user, "delete-key", view{
		Title: "Delete a key", Section: "keys", Body: map[string]any{"Key": newKeyView(key, c.Store.Now())},
	})
}

// deleteKey answers POST /console/keys/{id}/delete.
func (c *console) deleteKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	if _, err := readForm(r); err != nil {
		return err
	}
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if err := c.Identity.DeleteKey(r.Context(), identity.ClientOf(r, c.Cookie), user.principal.Account.ID, id); err != nil {
		return err
	}
	redirect(w, r, home+"?done=deleted")
	return nil
}
