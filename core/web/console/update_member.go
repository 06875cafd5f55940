package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// changeMember answers POST /console/members/change: it changes a member's role.
func (c *console) changeMember(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	person, err := personOf(f)
	if err != nil {
		return "", err
	}
	role, err := account.ParseRole(f.values["role"])
	if err == nil {
		_, err = c.Identity.Members.ChangeRole(r.Context(), c.confirming(r, f), user.principal, person, role)
	}
	return membersPath + "?done=member-changed", err
}

// removeMember answers POST /console/members/remove.
func (c *console) removeMember(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	person, err := personOf(f)
	if err == nil {
		_, err = c.Identity.Members.Remove(r.Context(), c.confirming(r, f), user.principal, person)
	}
	return membersPath + "?done=member-removed", err
}

// leaveAccount answers POST /console/members/leave: the person leaves the account that the session acts on.
func (c *console) leaveAccount(_ http.ResponseWriter, r *http.Request, user currentUser, _ *form) (string, error) {
	_, err := c.Identity.Members.Leave(r.Context(), c.client(r), user.principal)
	return accountsPath + "?done=left", err
}

func personOf(f *form) (uuid.UUID, error) {
	person, err := uuid.Parse(f.values["person"])
	if err != nil {
		return uuid.Nil, account.ErrNoSuchMember
	}
	return person, nil
}

// renameShared answers POST /console/members/rename: it renames the shared account that the session acts on.
func (c *console) renameShared(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	_, err := c.Identity.Members.RenameShared(r.Context(), c.client(r), user.principal, f.values["name"])
	return membersPath + "?done=shared-renamed", err
}

// deleteShared answers POST /console/members/delete: it deletes the shared account that the session acts on. The password
// confirms it; a person without a password needs a recent session.
func (c *console) deleteShared(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	return accountsPath + "?done=shared-ended", c.Identity.Members.DeleteShared(r.Context(), c.confirming(r, f), user.principal)
}
