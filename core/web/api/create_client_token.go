package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/wire"
)

// errKeyEnded is for a key that was deleted, or whose grace period ended, after the gateway verified it.
var errKeyEnded = route.NewError(http.StatusForbidden, wire.InvalidAPIKey, "This API key is no longer valid. Use another one.")

type clientTokenJSON struct {
	Token     string             `json:"token"`
	ExpiresAt transfer.Timestamp `json:"expiresAt"`
}

// createClientToken answers POST /v2/transfers/{id}/client-token. The body is optional. Nothing is stored: gateways verify the token with the secret
// that the asking gateway has presented, and end it with its key.
func (s *Server) createClientToken(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	lifetime, err := tokenLifetime(r)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	intent, err := s.Intents.FindForChange(r.Context(), by, r.PathValue("id")) // the token may report its transaction
	if err != nil {
		return err
	}
	key, err := s.Identities.Key(r.Context(), by.AccountID, by.KeyID)
	if errors.Is(err, account.ErrNotFound) {
		return errKeyEnded
	}
	if err != nil {
		return err
	}
	expires := s.Now().Add(lifetime).Truncate(time.Second)
	if key.ExpiresAt != nil && key.ExpiresAt.Before(expires) {
		expires = key.ExpiresAt.Truncate(time.Second)
	}
	minter := s.Secrets.Minter(r.Header.Get(wire.HeaderGatewaySecret))
	token := minter.Mint(clienttoken.Claims{Key: key.Hash, TransferID: intent.ID, Expires: expires})
	return route.WriteJSON(w, http.StatusCreated, clientTokenJSON{token, transfer.NewTimestamp(expires)})
}

// tokenLifetime parses the optional body.
func tokenLifetime(r *http.Request) (time.Duration, error) {
	if r.ContentLength == 0 {
		return clienttoken.MaxLifetime, nil
	}
	body, err := route.Decode[struct {
		ExpiresIn *int64 `json:"expiresIn"`
	}](r)
	if err != nil || body.ExpiresIn == nil {
		return clienttoken.MaxLifetime, err
	}
	const most = int64(clienttoken.MaxLifetime / time.Second)
	if *body.ExpiresIn < 1 || *body.ExpiresIn > most {
		return 0, route.Invalid(wire.Issue{Path: "/expiresIn", Message: fmt.Sprintf("must be a number of seconds from 1 to %d", most)})
	}
	return time.Duration(*body.ExpiresIn) * time.Second, nil
}
