package auth

import (
	"net/http"
	"slices"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// listMembers answers GET /auth/organization/list-members with the members of an account, its holder first.
func (s *Server) listMembers(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "organizationId", "organizationSlug", "limit", "offset")
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
	total := len(roster)
	limit, issues := route.NumberParameter(parameters, "limit", total)
	offset, more := route.NumberParameter(parameters, "offset", 0)
	if issues = append(issues, more...); len(issues) > 0 {
		return route.Invalid(issues...)
	}
	roster = roster[min(offset, total):]
	roster = roster[:min(limit, len(roster))]
	return route.WriteJSON(w, http.StatusOK, struct {
		Members []memberJSON `json:"members"`
		Total   int          `json:"total"`
	}{route.Each(roster, newMemberJSON), total})
}

// memberOf finds a member of an account by the person's id or e-mail address.
func (s *Server) memberOf(r *http.Request, on *identity.Principal, idOrEmail string) (account.Member, error) {
	roster, err := s.Identities.Members(r.Context(), on.Account.ID)
	if err != nil {
		return account.Member{}, err
	}
	n := slices.IndexFunc(roster, func(m account.Member) bool { return m.PersonID.String() == idOrEmail || m.Email == idOrEmail })
	if n < 0 {
		return account.Member{}, account.ErrNoSuchMember
	}
	return roster[n], nil
}
