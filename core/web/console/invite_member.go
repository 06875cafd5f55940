package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// inviteMember answers POST /console/members/invite. If mail is not configured, the response is the page with the link, which is
// shown only once.
func (c *console) inviteMember(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	role, err := account.ParseRole(f.values["role"])
	if err != nil {
		return "", err
	}
	invited, err := c.Identity.Members.Invite(r.Context(), c.confirming(r, f), user.principal, f.values["email"], role, true)
	if err != nil {
		return "", err
	}
	if invited.Link != "" {
		return "", c.renderMembers(w, r, user, f, invited.Link)
	}
	return membersPath + "?done=invited", nil
}

// cancelInvitation answers POST /console/members/cancel.
func (c *console) cancelInvitation(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	id, err := uuid.Parse(f.values["invitation"])
	if err != nil {
		return "", account.ErrNoInvitation
	}
	invitation, err := c.Identities.InvitationByID(r.Context(), id, c.Now())
	if err != nil {
		return "", err
	}
	return membersPath + "?done=invite-canceled", c.Identity.Members.CancelInvitation(r.Context(), c.client(r), user.principal, invitation)
}
