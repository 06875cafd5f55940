package api

import (
	"net/http"

	"intents.internal/core/identity"
)

// getOrganization answers GET /auth/organization/get-full-organization with an account, its members and its open invitations.
func (s *Server) getOrganization(w http.ResponseWriter, r *http.Request) error {
	parameters, err := query(r, "organizationId", "organizationSlug", "membersLimit")
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
	limit, issues := numberParameter(parameters, "membersLimit", len(roster))
	if len(issues) > 0 {
		return invalid(issues...)
	}
	roster = roster[:min(limit, len(roster))]
	invitations, err := s.Identities.Invitations(r.Context(), on.Account.ID, s.Transfers.Now())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		organizationJSON
		Members     []memberJSON     `json:"members"`
		Invitations []invitationJSON `json:"invitations"`
	}{newOrganizationJSON(on.Account), each(roster, newMemberJSON), each(invitations, newPendingJSON)})
}
