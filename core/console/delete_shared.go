package console

import (
	"net/http"

	"intents.internal/core/access"
)

// deleteShared answers POST /console/members/delete: the shared account that the session acts on ends. The password confirms it; a person
// without one needs a recent session.
func (c *console) deleteShared(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "password")
	if err != nil {
		return err
	}
	if f.ok() {
		err = c.Access.DeleteShared(r.Context(), access.VisitorOf(r, c.Cookie), user.acting, f.values["password"])
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderMembers(w, r, user, f, "")
	}
	redirect(w, r, accountsPath+"?done=shared-ended")
	return nil
}
