package console

import (
	"net/http"

	"intents.internal/core/identity/account"
)

const membersPath = "/console/members"

// listMembers answers GET /console/members: the members of the account that the session acts on, and its open invitations.
func (c *console) listMembers(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	return c.renderMembers(w, r, user, f, "")
}

// renderMembers shows link, if it is not empty, as the link of the new invitation.
func (c *console) renderMembers(w http.ResponseWriter, r *http.Request, user currentUser, f *form, link string) error {
	on := user.principal.Account
	members, err := c.Identities.Members(r.Context(), on.ID)
	if err != nil {
		return err
	}
	invitations, err := c.Identities.Invitations(r.Context(), on.ID, c.Now())
	if err != nil {
		return err
	}
	return c.render(w, r, user, "members", view{Title: "Members", Section: "members", Form: f, Body: map[string]any{
		"Members": members, "Invitations": invitations, "Roles": account.Roles, "Me": user.owner.ID, "Mail": c.Identity.MailQueued != nil, "Link": link,
		"Shared": on.Shared, "Holder": on.ID == user.owner.ID, "Password": user.owner.PasswordHash != "", "Most": account.MaxMembers,
	}})
}
