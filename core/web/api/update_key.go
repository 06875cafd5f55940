package api

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/wire"
)

// updateKey answers POST /auth/api-key/update: it renames, disables or enables a key, or sets its expiry, scopes or
// networks.
func (s *Server) updateKey(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		KeyID     string    `json:"keyId"`
		Name      *string   `json:"name"`
		Enabled   *bool     `json:"enabled"`
		ExpiresIn expiresIn `json:"expiresIn"`
		Scopes    []string  `json:"scopes"`
		Networks  []string  `json:"networks"`
		Password  string    `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	if request.Name == nil && request.Enabled == nil && !request.ExpiresIn.given && request.Scopes == nil && request.Networks == nil {
		return invalid(wire.Issue{Message: "names nothing to change; give name, enabled, expiresIn, scopes or networks"})
	}
	change := account.KeyChange{Name: request.Name, Enabled: request.Enabled}
	if change.ExpiresIn, err = request.ExpiresIn.parse(); err != nil {
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
	key, err := s.Identity.UpdateKey(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r), keyID, change)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, newKeyJSON(key))
}

// expiresIn distinguishes null, which is no expiry, from an absent field.
type expiresIn struct {
	given   bool
	seconds *int64
}

// UnmarshalJSONFrom reads a number of seconds or null.
func (e *expiresIn) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	e.given = true
	return json.UnmarshalDecode(from, &e.seconds)
}

// parse returns nil for an absent field and zero for no expiry.
func (e *expiresIn) parse() (*time.Duration, error) {
	if !e.given {
		return nil, nil
	}
	if e.seconds == nil {
		return new(time.Duration), nil
	}
	d, err := account.ParseExpiresIn(*e.seconds)
	return &d, err
}
