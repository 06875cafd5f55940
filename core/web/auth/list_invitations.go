package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// listInvitations answers GET /auth/organization/list-invitations with the open invitations to an account, newest first.
func (s *Server) listInvitations(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "organizationId")
	if err != nil {
		return err
	}
	on, err := s.on(r, parameters["organizationId"], "", identity.Read)
	if err != nil {
		return err
	}
	invitations, err := s.Identities.Invitations(r.Context(), on.Account.ID, s.Now())
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, route.Each(invitations, newPendingJSON))
}
