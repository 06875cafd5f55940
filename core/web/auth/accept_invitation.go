package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// answeredJSON is an answered invitation, with the new member.
type answeredJSON struct {
	Invitation invitationJSON `json:"invitation"`
	Member     *memberJSON    `json:"member"`
}

// acceptInvitation answers POST /auth/organization/accept-invitation: it makes the person a member, and the session acts on the
// account.
func (s *Server) acceptInvitation(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Token string `json:"invitationId"`
	}](r)
	if err != nil {
		return err
	}
	invitation, member, err := s.Identity.Members.AcceptInvitation(r.Context(), s.client(r), identity.PrincipalOf(r), request.Token)
	if err != nil {
		return err
	}
	joined := newMemberJSON(member)
	return route.WriteJSON(w, http.StatusOK, answeredJSON{newInvitationJSON(invitation, "accepted"), &joined})
}
