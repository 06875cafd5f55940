package console

import (
	"net/http"

	"intents.internal/core/access"
)

// renameShared answers POST /console/members/rename: the shared account that the session acts on gets another name.
func (c *console) renameShared(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "name")
	if err != nil {
		return err
	}
	if f.ok() {
		_, err = c.Access.RenameShared(r.Context(), access.VisitorOf(r, c.Cookie), user.acting, f.values["name"])
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderMembers(w, r, user, f, "")
	}
	redirect(w, r, membersPath+"?done=shared-renamed")
	return nil
}
