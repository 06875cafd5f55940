package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// createOrganization answers POST /auth/organization/create with a new shared account, whose owner is the session's person. The
// slug that better-auth's client sends is ignored: accounts have none.
func (s *Server) createOrganization(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Name string                 `json:"name"`
		Slug route.Nullable[string] `json:"slug"`
		Keep bool                   `json:"keepCurrentActiveOrganization"`
	}](r)
	if err != nil {
		return err
	}
	principal := identity.PrincipalOf(r)
	shared, err := s.Identity.Members.CreateShared(r.Context(), s.client(r), principal, identity.SharedRequest{Name: request.Name, Stay: request.Keep})
	if err != nil {
		return err
	}
	owner := account.Member{
		AccountID: shared.ID, PersonID: principal.Person.ID, Role: account.RoleOwner, CreatedAt: shared.CreatedAt,
		Name: principal.Person.Name, Email: principal.Person.Email,
	}
	return route.WriteJSON(w, http.StatusOK, struct {
		organizationJSON
		Members []memberJSON `json:"members"`
	}{newOrganizationJSON(shared), []memberJSON{newMemberJSON(owner)}})
}
