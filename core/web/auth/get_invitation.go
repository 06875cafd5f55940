package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// getInvitation answers GET /auth/organization/get-invitation with the invitation of a link, for the invited person. The id here,
// and in the accept and reject routes, is the secret token of the link.
func (s *Server) getInvitation(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "id")
	if err != nil {
		return err
	}
	invitation, err := s.Identity.Invitation(r.Context(), s.client(r), parameters["id"])
	if err != nil {
		return err
	}
	if err := invitation.For(identity.PrincipalOf(r).Person); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, struct {
		invitationJSON
		OrganizationName string `json:"organizationName"`
		OrganizationSlug string `json:"organizationSlug"`
		InviterEmail     string `json:"inviterEmail"`
	}{newPendingJSON(invitation), invitation.AccountName, invitation.AccountID.String(), invitation.InviterEmail})
}
