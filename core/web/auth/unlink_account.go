package auth

import (
	"net/http"
	"strings"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// unlinkAccount answers POST /auth/unlink-account: it removes a way to sign in and ends the account's other sessions. Only a
// person with a passkey can remove the password.
func (s *Server) unlinkAccount(w http.ResponseWriter, r *http.Request) error {
	principal := identity.PrincipalOf(r)
	request, err := route.Decode[struct {
		ProviderID string `json:"providerId"`
		AccountID  string `json:"accountId"`
		Password   string `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	if request.ProviderID == credentialProvider {
		return s.unlinkPassword(w, r, principal)
	}
	identities, err := s.Identity.Persons.Identities(r.Context(), principal.Person.ID)
	if err != nil {
		return err
	}
	var named []account.Identity
	for _, i := range identities {
		provider, accountID := s.providerOf(i.Identity)
		same := accountID == request.AccountID || provider == walletProvider && strings.EqualFold(accountID, request.AccountID)
		if provider == request.ProviderID && (same || request.AccountID == "") {
			named = append(named, i.Identity)
		}
	}
	switch len(named) {
	case 0:
		return account.ErrIdentityNotFound
	case 1:
	default:
		return route.Invalid(wire.Issue{
			Path: "/accountId", Message: "must say which, as the account has several of this provider; see /auth/list-accounts",
		})
	}
	if err := s.Identity.Persons.Unlink(r.Context(), s.confirming(r, request.Password), principal, named[0]); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}

func (s *Server) unlinkPassword(w http.ResponseWriter, r *http.Request, principal *identity.Principal) error {
	if !principal.Session.HasPasskey {
		return route.Invalid(wire.Issue{Path: "/providerId", Message: "must not be the password's, which stays; change it instead"})
	}
	if err := s.Identity.Persons.UnlinkPassword(r.Context(), s.client(r), principal); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}
