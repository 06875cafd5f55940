package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// leaveOrganization answers POST /auth/organization/leave with the former member.
func (s *Server) leaveOrganization(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		OrganizationID string `json:"organizationId"`
	}](r)
	if err != nil {
		return err
	}
	on, err := s.on(r, request.OrganizationID, "", identity.Person)
	if err != nil {
		return err
	}
	member, err := s.Identity.Members.Leave(r.Context(), s.client(r), on)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newMemberJSON(member))
}
