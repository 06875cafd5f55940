package auth

import (
	"net/http"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// rotateKey answers POST /auth/api-key/rotate with a new key that replaces another, which remains valid for the grace period. The
// text of the new key is shown only here.
func (s *Server) rotateKey(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		KeyID       string                `json:"keyId"`
		GracePeriod route.Nullable[int64] `json:"gracePeriod"`
		Password    string                `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	var grace time.Duration
	if request.GracePeriod.Value != nil {
		if grace, err = account.ParseGracePeriod(*request.GracePeriod.Value); err != nil {
			return err
		}
	}
	keyID, err := parseID(request.KeyID)
	if err != nil {
		return err
	}
	key, text, err := s.Identity.Keys.Rotate(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r), keyID, grace)
	if err != nil {
		return err
	}
	return writeShownKey(w, key, text)
}
