package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/account"
	"intents.internal/pkg/wire"
)

// updateKey answers POST /auth/api-key/update: it renames, disables or enables a key.
func (s *Server) updateKey(w http.ResponseWriter, r *http.Request) error {
	_, owner, err := s.signedIn(r)
	if err != nil {
		return err
	}
	request, err := decode[struct {
		KeyID   string  `json:"keyId"`
		Name    *string `json:"name"`
		Enabled *bool   `json:"enabled"`
	}](r)
	if err != nil {
		return err
	}
	if request.Name == nil && request.Enabled == nil {
		return invalid(wire.Issue{Message: "names nothing to change; give name or enabled"})
	}
	keyID, err := parseKeyID(request.KeyID)
	if err != nil {
		return err
	}
	key, err := s.Store.UpdateKey(r.Context(), owner.ID, keyID, func(k *account.Key) error {
		return k.Change(request.Name, request.Enabled, time.Now())
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, newKeyJSON(key))
}

// parseKeyID answers for an id that cannot be one as for a key that does not exist.
func parseKeyID(s string) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 { // Parse takes other spellings too
		return uuid.Nil, account.ErrNotFound
	}
	return id, nil
}
