package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// caller returns the identity in the gateway's headers of a keyed request.
func caller(r *http.Request) (transfer.Caller, error) {
	accountID, accountErr := uuid.Parse(r.Header.Get(wire.HeaderAccountID))
	keyID, keyErr := uuid.Parse(r.Header.Get(wire.HeaderKeyID))
	environment, environmentErr := network.Parse(r.Header.Get(wire.HeaderKeyEnv))
	if err := errors.Join(accountErr, keyErr, environmentErr); err != nil {
		return transfer.Caller{}, fmt.Errorf("read the identity the gateway sent: %w", err)
	}
	return transfer.Caller{AccountID: accountID, KeyID: keyID, Environment: environment}, nil
}

// actor is who the audit log names beside a key: the address and the program of the request.
func actor(r *http.Request) account.Actor { return identity.ClientOf(r, identity.Cookie{}).Actor() }
