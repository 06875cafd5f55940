package auth

import (
	"errors"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// updateOrganization answers POST /auth/organization/update: it renames a shared account.
func (s *Server) updateOrganization(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		ID   string `json:"organizationId"`
		Data struct {
			Name string `json:"name"`
		} `json:"data"`
	}](r)
	if err != nil {
		return err
	}
	on, err := s.on(r, request.ID, "", identity.Manage)
	if err != nil {
		return err
	}
	renamed, err := s.Identity.Members.RenameShared(r.Context(), s.client(r), on, request.Data.Name)
	if invalidName, ok := errors.AsType[*account.InvalidError](err); ok {
		return route.Invalid(wire.Issue{Path: "/data/" + invalidName.Field, Message: invalidName.Message})
	}
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newOrganizationJSON(renamed))
}
