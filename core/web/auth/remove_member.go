package auth

import (
	"net/http"
	"strings"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// removeMember answers POST /auth/organization/remove-member with the removed member. The member's sessions that act on the
// account end.
func (s *Server) removeMember(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		OrganizationID  string `json:"organizationId"`
		MemberIDOrEmail string `json:"memberIdOrEmail"`
		Password        string `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	on, err := s.on(r, request.OrganizationID, "", identity.Manage)
	if err != nil {
		return err
	}
	member, err := s.memberOf(r, on, strings.ToLower(request.MemberIDOrEmail))
	if err != nil {
		return err
	}
	if member, err = s.Identity.Members.Remove(r.Context(), s.confirming(r, request.Password), on, member.PersonID); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, map[string]memberJSON{"member": newMemberJSON(member)})
}
