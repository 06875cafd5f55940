package console

import (
	"net/http"

	"intents.internal/core/identity"
)

// renameShared answers POST /console/members/rename: it renames the shared account that the session acts on.
func (c *console) renameShared(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.submitMembers(w, r, user, membersPath+"?done=shared-renamed", []string{"name"}, func(f *form) error {
		_, err := c.Identity.RenameShared(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, f.values["name"])
		return err
	})
}
