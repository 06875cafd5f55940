package auth

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// updateKey answers POST /auth/api-key/update: it renames, disables or enables a key, or sets its expiry, scopes or
// networks.
func (s *Server) updateKey(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		KeyID     string                         `json:"keyId"`
		Name      *string                        `json:"name"`
		Enabled   *bool                          `json:"enabled"`
		ExpiresIn route.Nullable[int64]          `json:"expiresIn"`
		Scopes    []string                       `json:"scopes"`
		Networks  []string                       `json:"networks"`
		Password  string                         `json:"password"`
		Metadata  route.Nullable[jsontext.Value] `json:"metadata"` // better-auth's: ignored
	}](r)
	if err != nil {
		return err
	}
	if request.Name == nil && request.Enabled == nil && !request.ExpiresIn.Given && request.Scopes == nil && request.Networks == nil {
		return route.Invalid(wire.Issue{Message: "names nothing to change; give name, enabled, expiresIn, scopes or networks"})
	}
	change := account.KeyChange{Name: request.Name, Enabled: request.Enabled}
	if change.ExpiresIn, err = expiry(request.ExpiresIn); err != nil {
		return err
	}
	if request.Scopes != nil {
		scopes, err := account.ParseScopes(request.Scopes)
		if err != nil {
			return err
		}
		change.Scopes = &scopes
	}
	if request.Networks != nil {
		networks, err := account.ParseNetworks(request.Networks)
		if err != nil {
			return err
		}
		change.Networks = &networks
	}
	keyID, err := parseID(request.KeyID)
	if err != nil {
		return err
	}
	key, err := s.Identity.Keys.Update(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r), keyID, change)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newKeyJSON(key))
}

// expiry returns nil for an absent field and zero for null, which is no expiry.
func expiry(seconds route.Nullable[int64]) (*time.Duration, error) {
	if seconds.Value == nil {
		if !seconds.Given {
			return nil, nil
		}
		return new(time.Duration), nil
	}
	d, err := account.ParseExpiresIn(*seconds.Value)
	return &d, err
}
