package auth

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

// better-auth's provider names of the ways to sign in. An identity of an issuer that is no longer configured has the issuer's URL
// instead.
const (
	credentialProvider = "credential"
	walletProvider     = "siwe"
	oidcProvider       = "oidc"
)

// listAccounts answers GET /auth/list-accounts with the ways to sign in to the account: the password first, then its identities,
// oldest first.
func (s *Server) listAccounts(w http.ResponseWriter, r *http.Request) error {
	_, owner, err := authenticate(r)
	if err != nil {
		return err
	}
	identities, err := s.Identity.Persons.Identities(r.Context(), owner.ID)
	if err != nil {
		return err
	}
	ways := []accountJSON{}
	if owner.PasswordHash != "" {
		ways = append(ways, newAccountJSON(owner.ID, credentialProvider, owner.ID.String(), transfer.NewTimestamp(owner.CreatedAt)))
	}
	for _, i := range identities {
		provider, accountID := s.providerOf(i.Identity)
		ways = append(ways, newAccountJSON(owner.ID, provider, accountID, transfer.NewTimestamp(i.LinkedAt)))
	}
	return route.WriteJSON(w, http.StatusOK, ways)
}

// accountJSON is a way to sign in, in better-auth's shape.
type accountJSON struct {
	ID         string             `json:"id"`
	ProviderID string             `json:"providerId"`
	AccountID  string             `json:"accountId"`
	UserID     string             `json:"userId"`
	Scopes     []string           `json:"scopes"`
	CreatedAt  transfer.Timestamp `json:"createdAt"`
	UpdatedAt  transfer.Timestamp `json:"updatedAt"`
}

func newAccountJSON(owner uuid.UUID, provider, accountID string, at transfer.Timestamp) accountJSON {
	return accountJSON{
		ID: provider + ":" + accountID, ProviderID: provider, AccountID: accountID, UserID: owner.String(), Scopes: []string{}, CreatedAt: at, UpdatedAt: at,
	}
}

// providerOf returns better-auth's name of an identity: a wallet's address, a smart account's address:chain.
func (s *Server) providerOf(i account.Identity) (provider, accountID string) {
	if chain, wallet := i.IsWallet(); wallet {
		return walletProvider, strings.TrimSuffix(i.Address()+":"+chain.Reference, ":")
	}
	if s.Identity.Persons.CanSignIn(i) {
		return oidcProvider, i.Subject
	}
	return i.Issuer, i.Subject
}
