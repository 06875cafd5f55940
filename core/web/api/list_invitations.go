package api

import (
	"net/http"

	"intents.internal/core/identity"
)

// listInvitations answers GET /auth/organization/list-invitations with the open invitations to an account, newest first.
func (s *Server) listInvitations(w http.ResponseWriter, r *http.Request) error {
	parameters, err := query(r, "organizationId")
	if err != nil {
		return err
	}
	on, err := s.on(r, parameters["organizationId"], "", identity.Read)
	if err != nil {
		return err
	}
	invitations, err := s.Identities.Invitations(r.Context(), on.Account.ID, s.Transfers.Now())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, each(invitations, newPendingJSON))
}
