package api

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/account"
	"intents.internal/pkg/wire"
)

// updateKey answers POST /auth/api-key/update: it renames, disables or enables a key or sets its expiry.
func (s *Server) updateKey(w http.ResponseWriter, r *http.Request) error {
	_, owner, err := s.signedIn(r)
	if err != nil {
		return err
	}
	request, err := decode[struct {
		KeyID     string   `json:"keyId"`
		Name      *string  `json:"name"`
		Enabled   *bool    `json:"enabled"`
		ExpiresIn lifetime `json:"expiresIn"`
	}](r)
	if err != nil {
		return err
	}
	if request.Name == nil && request.Enabled == nil && !request.ExpiresIn.given {
		return invalid(wire.Issue{Message: "names nothing to change; give name, enabled or expiresIn"})
	}
	change := account.KeyChange{Name: request.Name, Enabled: request.Enabled}
	if change.ExpiresIn, err = request.ExpiresIn.parse(); err != nil {
		return err
	}
	keyID, err := parseID(request.KeyID)
	if err != nil {
		return err
	}
	key, err := s.Access.UpdateKey(r.Context(), s.visitor(r), owner.ID, keyID, change)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, newKeyJSON(key))
}

// lifetime tells a null, which is for ever, from no lifetime at all.
type lifetime struct {
	given   bool
	seconds *int64
}

// UnmarshalJSONFrom reads a number of seconds or null.
func (l *lifetime) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	l.given = true
	return json.UnmarshalDecode(from, &l.seconds)
}

// parse returns nil where none is given, and zero for ever.
func (l *lifetime) parse() (*time.Duration, error) {
	if !l.given {
		return nil, nil
	}
	if l.seconds == nil {
		return new(time.Duration), nil
	}
	lasting, err := account.ParseExpiresIn(*l.seconds)
	return &lasting, err
}
