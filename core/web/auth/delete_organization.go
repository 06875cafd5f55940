package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// deleteOrganization answers POST /auth/organization/delete: it deletes a shared account permanently. The person's password or a
// fresh session confirms it.
func (s *Server) deleteOrganization(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		ID       string `json:"organizationId"`
		Password string `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	on, err := s.on(r, request.ID, "", identity.Manage)
	if err != nil {
		return err
	}
	if err := s.Identity.Members.DeleteShared(r.Context(), s.confirming(r, request.Password), on); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newOrganizationJSON(on.Account))
}
