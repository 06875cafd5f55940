package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/access"
	"intents.internal/core/account"
)

// changeMember answers POST /console/members/change: a member gets another role.
func (c *console) changeMember(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.submitMember(w, r, user, "member-changed", []string{"person", "role"}, func(f *form, person uuid.UUID) error {
		role, err := account.ParseRole(f.values["role"])
		if err == nil {
			_, err = c.Access.ChangeMember(r.Context(), access.VisitorOf(r, c.Cookie), user.acting, person, role)
		}
		return err
	})
}

// removeMember answers POST /console/members/remove.
func (c *console) removeMember(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.submitMember(w, r, user, "member-removed", []string{"person"}, func(_ *form, person uuid.UUID) error {
		_, err := c.Access.RemoveMember(r.Context(), access.VisitorOf(r, c.Cookie), user.acting, person)
		return err
	})
}

// leaveAccount answers POST /console/members/leave: the person leaves the account that the session acts on.
func (c *console) leaveAccount(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	_, err = c.Access.Leave(r.Context(), access.VisitorOf(r, c.Cookie), user.acting)
	if err := f.note(err); err != nil {
		return err
	}
	if !f.ok() {
		return c.renderMembers(w, r, user, f, "")
	}
	redirect(w, r, accountsPath+"?done=left")
	return nil
}

// submitMember reads a form about a member, does what it asks and leads back to the list.
func (c *console) submitMember(
	w http.ResponseWriter, r *http.Request, user currentUser, done string, fields []string, do func(*form, uuid.UUID) error,
) error {
	f, err := readForm(r, fields...)
	if err != nil {
		return err
	}
	person, err := uuid.Parse(f.values["person"])
	if err != nil {
		return account.ErrNoSuchMember
	}
	if err := f.note(do(f, person)); err != nil {
		return err
	}
	if !f.ok() {
		return c.renderMembers(w, r, user, f, "")
	}
	redirect(w, r, membersPath+"?done="+done)
	return nil
}
