package gateways

import (
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

var errKeyRefused = route.NewError(http.StatusNotFound, wire.InvalidAPIKey, "No usable key has this hash.")

// verifyKey answers the gateways' POST /internal/keys/verify. Like the gateway's own response, it does not say why a key is
// rejected.
func (s *Server) verifyKey(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[wire.VerifyKeyRequest](r)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(request.Hash)
	if err != nil || len(hash) != len(apikey.Hash{}) {
		return route.Invalid(wire.Issue{Path: "/hash", Message: "must be 64 hexadecimal digits"})
	}
	now := s.Now()
	key, of, err := s.Identities.UsableKey(r.Context(), apikey.Hash(hash), now)
	if errors.Is(err, account.ErrNotFound) {
		return errKeyRefused
	}
	if err != nil {
		return err
	}
	w.Header().Set("Date", now.Format(http.TimeFormat)) // gateways compute the time left from it
	verified := wire.VerifiedKey{
		KeyID: key.ID.String(), AccountID: key.AccountID.String(), Environment: key.Environment, ExpiresAt: key.ExpiresAt,
		Limit: keyLimit(key.Limit), LimitBucket: key.LimitBucket.String(), AccountLimit: keyLimit(of.Limit), Networks: key.Networks,
		Origins: of.OriginsIn(key.Environment),
	}
	if key.Scopes != apikey.AllScopes {
		verified.Scopes = key.Scopes.Names()
	}
	return route.WriteJSON(w, http.StatusOK, verified)
}

func keyLimit(l account.Limit) wire.KeyLimit {
	return wire.KeyLimit{Requests: l.Requests, PeriodSeconds: int(l.Period / time.Second)}
}
