package api

import (
	"time"

	"intents.internal/core/account"
	"intents.internal/pkg/network"
)

// keyJSON is a key as its owner sees it, in the words of better-auth's api-key plugin. rateLimitTimeWindow is in
// milliseconds.
type keyJSON struct {
	ID                  string              `json:"id"`
	Name                string              `json:"name"`
	Start               string              `json:"start"`
	Prefix              string              `json:"prefix"`
	Environment         network.Environment `json:"environment"`
	Enabled             bool                `json:"enabled"`
	ExpiresAt           *timestamp          `json:"expiresAt"`
	LastUsedAt          *timestamp          `json:"lastUsedAt"`
	CreatedAt           timestamp           `json:"createdAt"`
	UpdatedAt           timestamp           `json:"updatedAt"`
	RateLimitEnabled    bool                `json:"rateLimitEnabled"`
	RateLimitMax        int                 `json:"rateLimitMax"`
	RateLimitTimeWindow int64               `json:"rateLimitTimeWindow"`
}

func newKeyJSON(k *account.Key) keyJSON {
	return keyJSON{
		ID: k.ID.String(), Name: k.Name, Start: k.Start, Prefix: "sk_" + string(k.Environment) + "_",
		Environment: k.Environment, Enabled: k.Enabled,
		ExpiresAt: optionalTimestamp(k.ExpiresAt), LastUsedAt: optionalTimestamp(k.LastUsedAt),
		CreatedAt: timestamp(k.CreatedAt), UpdatedAt: timestamp(k.UpdatedAt),
		RateLimitEnabled: true, RateLimitMax: k.Limit.Requests,
		RateLimitTimeWindow: int64(k.Limit.Period / time.Millisecond),
	}
}
