package console

import "net/http"

// confirmDeleteKey answers GET /console/keys/{id}/delete with a page that names the key and asks for confirmation.
func (c *console) confirmDeleteKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	key, err := c.keyOf(r, user)
	if err != nil {
		return err
	}
	return c.render(w, r, user, "delete-key", view{
		Title: "Delete a key", Section: "keys", Body: map[string]any{"Key": newKeyView(key, c.Now())},
	})
}

// deleteKey answers POST /console/keys/{id}/delete.
func (c *console) deleteKey(_ http.ResponseWriter, r *http.Request, user currentUser, _ *form) (string, error) {
	id, err := idOf(r)
	if err != nil {
		return "", err
	}
	return keysPath + "?done=deleted", c.Identity.Keys.Delete(r.Context(), c.client(r), user.principal, id)
}
