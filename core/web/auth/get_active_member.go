package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// getActiveMember answers GET /auth/organization/get-active-member with the person as a member of the account that the session acts on.
func (s *Server) getActiveMember(w http.ResponseWriter, r *http.Request) error {
	principal := identity.PrincipalOf(r)
	member, err := s.memberOf(r, principal, principal.Person.ID.String())
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newMemberJSON(member))
}
