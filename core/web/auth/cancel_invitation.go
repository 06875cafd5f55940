package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// cancelInvitation answers POST /auth/organization/cancel-invitation with the invitation, whose link stops working. The id in the
// body is the one in lists.
func (s *Server) cancelInvitation(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		InvitationID string `json:"invitationId"`
	}](r)
	if err != nil {
		return err
	}
	id, err := parseID(request.InvitationID)
	if err != nil {
		return account.ErrNoInvitation
	}
	invitation, err := s.Identities.InvitationByID(r.Context(), id, s.Now())
	if err != nil {
		return err
	}
	on, err := s.Identity.Sessions.On(r.Context(), identity.PrincipalOf(r), invitation.AccountID, identity.Manage)
	if err != nil {
		return err
	}
	if err := s.Identity.Members.CancelInvitation(r.Context(), s.client(r), on, invitation); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newInvitationJSON(invitation, "canceled"))
}
