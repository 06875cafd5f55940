package client

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// CreateClientToken makes a token with which a browser or an app reads, checks and reports one intent without the key. Nothing is stored, so
// that each call makes another. It is tried once.
func (s *Transfers) CreateClientToken(ctx context.Context, id string, options CreateClientToken) (*ClientToken, error) {
	return call[ClientToken](ctx, s.c, request{method: http.MethodPost, path: transferPath(id, "/client-token"), body: options})
}

// hasToken reports whether the client has a client token in place of a key.
func (c *Client) hasToken() bool { return strings.HasPrefix(c.key, "ct_") }

// CreateClientToken is the body of CreateClientToken.
type CreateClientToken struct {
	// ExpiresIn is for how many seconds the token is valid, at most a day, which is also the default.
	ExpiresIn int `json:"expiresIn,omitzero"`
}

// ClientToken lets who has it read, check and report one intent.
type ClientToken struct { //nolint:revive // the API's word, and Token is that of the registry
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}
