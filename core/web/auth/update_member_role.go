package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// updateMemberRole answers POST /auth/organization/update-member-role with the updated member.
func (s *Server) updateMemberRole(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		OrganizationID string `json:"organizationId"`
		MemberID       string `json:"memberId"`
		Role           string `json:"role"`
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
	member, err := s.memberOf(r, on, request.MemberID)
	if err != nil {
		return err
	}
	if member, err = s.Identity.Members.ChangeRole(r.Context(), s.confirming(r, request.Password), on, member.PersonID, role); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newMemberJSON(member))
}
