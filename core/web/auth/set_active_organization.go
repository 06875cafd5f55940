package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// setActiveOrganization answers POST /auth/organization/set-active: the session acts on another account of the person from now
// on. With null it acts on the person's own account, and the response is null.
func (s *Server) setActiveOrganization(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		ID   route.Nullable[string] `json:"organizationId"`
		Slug string                 `json:"organizationSlug"`
	}](r)
	if err != nil {
		return err
	}
	principal, none := identity.PrincipalOf(r), request.ID.Given && request.ID.Value == nil
	wanted := principal.Person.ID.String()
	if !none {
		wanted = request.Slug
	}
	if request.ID.Value != nil {
		wanted = *request.ID.Value
	}
	on, err := s.on(r, wanted, "", identity.Person)
	if err != nil {
		return err
	}
	if err := s.Identity.Members.Act(r.Context(), s.client(r), principal, on.Account.ID); err != nil {
		return err
	}
	if none {
		return route.WriteJSON(w, http.StatusOK, nil)
	}
	return route.WriteJSON(w, http.StatusOK, newOrganizationJSON(on.Account))
}
