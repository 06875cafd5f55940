package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// rejectInvitation answers POST /auth/organization/reject-invitation.
func (s *Server) rejectInvitation(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Token string `json:"invitationId"`
	}](r)
	if err != nil {
		return err
	}
	invitation, err := s.Identity.Members.DeclineInvitation(r.Context(), s.client(r), identity.PrincipalOf(r), request.Token)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, answeredJSON{newInvitationJSON(invitation, "rejected"), nil})
}
