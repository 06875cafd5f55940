package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// inviteMember answers POST /auth/organization/invite-member with the invitation. The response is the same whether or not the
// address has an account. Link is null unless the service sends no mail; then the inviter passes it on.
func (s *Server) inviteMember(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		OrganizationID string `json:"organizationId"`
		Email          string `json:"email"`
		Role           string `json:"role"`
		Resend         bool   `json:"resend"`
		Password       string `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	on, err := s.on(r, request.OrganizationID, "", identity.Manage)
	if err != nil {
		return err
	}
	role, err := account.ParseRole(request.Role)
	if err != nil {
		return err
	}
	invited, err := s.Identity.Members.Invite(r.Context(), s.confirming(r, request.Password), on, request.Email, role, request.Resend)
	if err != nil {
		return err
	}
	answer := struct {
		invitationJSON
		Link *string `json:"link"`
	}{newPendingJSON(invited.Invitation), nil}
	if invited.Link != "" {
		answer.Link = &invited.Link
	}
	return route.WriteJSON(w, http.StatusOK, answer)
}
