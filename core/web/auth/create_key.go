package auth

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/network"
)

// createKey answers POST /auth/api-key/create with the new key, whose text is shown only here. The owner is the session's
// account; a body that names an owner has an unknown field.
func (s *Server) createKey(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Name        string                         `json:"name"`
		Environment network.Environment            `json:"environment"`
		ExpiresIn   route.Nullable[int64]          `json:"expiresIn"`
		Scopes      []string                       `json:"scopes"`
		Networks    []string                       `json:"networks"`
		Password    string                         `json:"password"`
		Prefix      route.Nullable[string]         `json:"prefix"` // better-auth's, and so is metadata: ignored
		Metadata    route.Nullable[jsontext.Value] `json:"metadata"`
	}](r)
	if err != nil {
		return err
	}
	wanted := account.KeyRequest{Name: request.Name, Environment: request.Environment}
	if request.ExpiresIn.Value != nil {
		if wanted.ExpiresIn, err = account.ParseExpiresIn(*request.ExpiresIn.Value); err != nil {
			return err
		}
	}
	if request.Scopes != nil {
		if wanted.Scopes, err = account.ParseScopes(request.Scopes); err != nil {
			return err
		}
	}
	if wanted.Networks, err = account.ParseNetworks(request.Networks); err != nil {
		return err
	}
	key, text, err := s.Identity.Keys.Create(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r), wanted)
	if err != nil {
		return err
	}
	return writeShownKey(w, key, text)
}
