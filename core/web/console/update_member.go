package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// changeMember answers POST /console/members/change: it changes a member's role.
func (c *console) changeMember(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.submitMembers(w, r, user, membersPath+"?done=member-changed", []string{"person", "role"}, func(f *form) error {
		person, err := personOf(f)
		if err != nil {
			return err
		}
		role, err := account.ParseRole(f.values["role"])
		if err == nil {
			_, err = c.Identity.ChangeMember(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, person, role)
		}
		return err
	})
}

// removeMember answers POST /console/members/remove.
func (c *console) removeMember(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.submitMembers(w, r, user, membersPath+"?done=member-removed", []string{"person"}, func(f *form) error {
		person, err := personOf(f)
		if err == nil {
			_, err = c.Identity.RemoveMember(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, person)
		}
		return err
	})
}

// leaveAccount answers POST /console/members/leave: the person leaves the account that the session acts on.
func (c *console) leaveAccount(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.submitMembers(w, r, user, accountsPath+"?done=left", nil, func(*form) error {
		_, err := c.Identity.Leave(r.Context(), identity.ClientOf(r, c.Cookie), user.principal)
		return err
	})
}

func personOf(f *form) (uuid.UUID, error) {
	person, err := uuid.Parse(f.values["person"])
	if err != nil {
		return uuid.Nil, account.ErrNoSuchMember
	}
	return person, nil
}

// submitMembers reads a form of the members' page with these fields, calls do and redirects to target, or shows the page with the
// form again.
func (c *console) submitMembers(
	w http.ResponseWriter, r *http.Request, user currentUser, target string, fields []string, do func(*form) error,
) error {
	f, err := readForm(r, fields...)
	if err != nil {
		return err
	}
	if f.ok() {
		if err := f.note(do(f)); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderMembers(w, r, user, f, "")
	}
	redirect(w, r, target)
	return nil
}
