package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// listOrganizations answers GET /auth/organization/list with the accounts that the person can act on, the person's own first.
func (s *Server) listOrganizations(w http.ResponseWriter, r *http.Request) error {
	memberships, err := s.Identities.Memberships(r.Context(), identity.PrincipalOf(r).Person.ID)
	if err != nil {
		return err
	}
	organizations := route.Each(memberships, func(m account.Membership) organizationJSON { return newOrganizationJSON(m.Account) })
	return route.WriteJSON(w, http.StatusOK, organizations)
}
