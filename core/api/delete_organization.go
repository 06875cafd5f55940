package api

import (
	"net/http"

	"intents.internal/core/access"
)

// deleteOrganization answers POST /auth/organization/delete: a shared account ends for good. The password of the person confirms it, or a
// session that has begun just now.
func (s *Server) deleteOrganization(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		ID       string `json:"organizationId"`
		Password string `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	on, err := s.on(r, request.ID, "", access.Manage)
	if err != nil {
		return err
	}
	if err := s.Access.DeleteShared(r.Context(), s.visitor(r), on, request.Password); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, newOrganizationJSON(on.Account))
}
