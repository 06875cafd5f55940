package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// inviteMember answers POST /console/members/invite. If mail is not configured, the response is the page with the link, which is
// shown only once.
func (c *console) inviteMember(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "email", "role")
	if err != nil {
		return err
	}
	link := ""
	if f.ok() {
		if link, err = c.invite(r, user, f); f.note(err) != nil {
			return err
		}
	}
	if !f.ok() || link != "" {
		return c.renderMembers(w, r, user, f, link)
	}
	redirect(w, r, membersPath+"?done=invited")
	return nil
}

func (c *console) invite(r *http.Request, user currentUser, f *form) (link string, err error) {
	role, err := account.ParseRole(f.values["role"])
	if err != nil {
		return "", err
	}
	invited, err := c.Identity.Invite(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, f.values["email"], role, true)
	if err != nil {
		return "", err
	}
	return invited.Link, nil
}

// cancelInvitation answers POST /console/members/cancel.
func (c *console) cancelInvitation(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "invitation")
	if err != nil {
		return err
	}
	id, err := uuid.Parse(f.values["invitation"])
	if err != nil {
		return account.ErrNoInvitation
	}
	invitation, err := c.Store.InvitationByID(r.Context(), id, c.Store.Now())
	if err != nil {
		return err
	}
	if err := c.Identity.CancelInvitation(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, invitation); err != nil {
		return err
	}
	redirect(w, r, membersPath+"?done=invite-canceled")
	return nil
}
