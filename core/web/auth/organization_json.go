package auth

import (
	"cmp"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
)

// organizationJSON is an account in the shape of better-auth's organizations. Slug repeats the id, because accounts have no slug;
// logo and metadata are null.
type organizationJSON struct {
	ID        string             `json:"id"`
	Name      string             `json:"name"`
	Slug      string             `json:"slug"`
	Logo      *string            `json:"logo"`
	Metadata  *struct{}          `json:"metadata"`
	CreatedAt transfer.Timestamp `json:"createdAt"`
}

func newOrganizationJSON(a *account.Account) organizationJSON {
	return organizationJSON{ID: a.ID.String(), Name: a.Name, Slug: a.ID.String(), CreatedAt: transfer.NewTimestamp(a.CreatedAt)}
}

// memberJSON is a member in better-auth's shape. ID repeats the person's.
type memberJSON struct {
	ID             string             `json:"id"`
	OrganizationID string             `json:"organizationId"`
	UserID         string             `json:"userId"`
	Role           account.Role       `json:"role"`
	CreatedAt      transfer.Timestamp `json:"createdAt"`
	User           memberUserJSON     `json:"user"`
}

// memberUserJSON is the public part of a person for other members.
type memberUserJSON struct {
	ID    string  `json:"id"`
	Name  string  `json:"name"`
	Email string  `json:"email"`
	Image *string `json:"image"`
}

func newMemberJSON(m account.Member) memberJSON {
	person := m.PersonID.String()
	return memberJSON{
		ID: person, OrganizationID: m.AccountID.String(), UserID: person, Role: m.Role, CreatedAt: transfer.NewTimestamp(m.CreatedAt),
		User: memberUserJSON{ID: person, Name: m.Name, Email: m.Email},
	}
}

// invitationJSON is an invitation in better-auth's shape.
type invitationJSON struct {
	ID             string             `json:"id"`
	OrganizationID string             `json:"organizationId"`
	Email          string             `json:"email"`
	Role           account.Role       `json:"role"`
	Status         string             `json:"status"`
	InviterID      string             `json:"inviterId"`
	ExpiresAt      transfer.Timestamp `json:"expiresAt"`
	CreatedAt      transfer.Timestamp `json:"createdAt"`
}

func newInvitationJSON(i *account.Invitation, status string) invitationJSON {
	return invitationJSON{
		ID: i.ID.String(), OrganizationID: i.AccountID.String(), Email: i.Email, Role: i.Role, Status: status, InviterID: i.InviterID.String(),
		ExpiresAt: transfer.NewTimestamp(i.ExpiresAt), CreatedAt: transfer.NewTimestamp(i.CreatedAt),
	}
}

func newPendingJSON(i *account.Invitation) invitationJSON { return newInvitationJSON(i, "pending") }

// on returns the person of a request, acting on the account that the request names by id or slug, or on the session's account if
// it names none. A malformed id is treated like an account of others.
func (s *Server) on(r *http.Request, id, slug string, need identity.Need) (*identity.Principal, error) {
	principal := identity.PrincipalOf(r)
	named := cmp.Or(id, slug)
	if named == "" {
		return principal, principal.Check(need)
	}
	accountID, err := parseID(named)
	if err != nil {
		return nil, account.ErrNotMember
	}
	return s.Identity.Sessions.On(r.Context(), principal, accountID, need)
}
