package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// getOrganization answers GET /auth/organization/get-full-organization with an account, its members and its open invitations.
func (s *Server) getOrganization(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "organizationId", "organizationSlug", "membersLimit")
	if err != nil {
		return err
	}
	on, err := s.on(r, parameters["organizationId"], parameters["organizationSlug"], identity.Read)
	if err != nil {
		return err
	}
	roster, err := s.Identities.Members(r.Context(), on.Account.ID)
	if err != nil {
		return err
	}
	limit, issues := route.NumberParameter(parameters, "membersLimit", len(roster))
	if len(issues) > 0 {
		return route.Invalid(issues...)
	}
	roster = roster[:min(limit, len(roster))]
	invitations, err := s.Identities.Invitations(r.Context(), on.Account.ID, s.Now())
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, struct {
		organizationJSON
		Members     []memberJSON     `json:"members"`
		Invitations []invitationJSON `json:"invitations"`
	}{newOrganizationJSON(on.Account), route.Each(roster, newMemberJSON), route.Each(invitations, newPendingJSON)})
}
