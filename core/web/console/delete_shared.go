package console

import "net/http"

// deleteShared answers POST /console/members/delete: it deletes the shared account that the session acts on. The password
// confirms it; a person without a password needs a recent session.
func (c *console) deleteShared(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.submitMembers(w, r, user, accountsPath+"?done=shared-ended", []string{"password"}, func(f *form) error {
		return c.Identity.DeleteShared(r.Context(), c.confirming(r, f), user.principal)
	})
}
