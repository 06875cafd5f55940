package api

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// getActiveMember answers GET /auth/organization/get-active-member with the person as a member of the account that the session acts on.
func (s *Server) getActiveMember(w http.ResponseWriter, r *http.Request) error {
	principal := identity.PrincipalOf(r)
	member, err := s.memberOf(r, principal, principal.Person.ID.String())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, http.StatusOK, newMemberJSON(member))
}

// getActiveMemberRole answers GET /auth/organization/get-active-member-role with the person's role in an account, or that of another member.
func (s *Server) getActiveMemberRole(w http.ResponseWriter, r *http.Request) error {
	parameters, err := query(r, "organizationId", "organizationSlug", "userId")
	if err != nil {
		return err
	}
	on, err := s.on(r, parameters["organizationId"], parameters["organizationSlug"], identity.Read)
	if err != nil {
		return err
	}
	role := on.Role
	if userID := parameters["userId"]; userID != "" {
		member, err := s.memberOf(r, on, userID)
		if err != nil {
			return err
		}
		role = member.Role
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, http.StatusOK, map[string]account.Role{"role": role})
}
