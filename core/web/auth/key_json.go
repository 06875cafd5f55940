package auth

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// keyJSON is a key in the shape of better-auth's api-key plugin. rateLimitTimeWindow is in
// milliseconds.
type keyJSON struct {
	ID                  string              `json:"id"`
	Name                string              `json:"name"`
	Start               string              `json:"start"`
	Prefix              string              `json:"prefix"`
	Environment         network.Environment `json:"environment"`
	Enabled             bool                `json:"enabled"`
	ExpiresAt           *transfer.Timestamp `json:"expiresAt"`
	LastUsedAt          *transfer.Timestamp `json:"lastUsedAt"`
	CreatedAt           transfer.Timestamp  `json:"createdAt"`
	UpdatedAt           transfer.Timestamp  `json:"updatedAt"`
	RateLimitEnabled    bool                `json:"rateLimitEnabled"`
	RateLimitMax        int                 `json:"rateLimitMax"`
	RateLimitTimeWindow int64               `json:"rateLimitTimeWindow"`
	Scopes              []string            `json:"scopes"`
	Networks            []netip.Prefix      `json:"networks"`
	// Permissions are the scopes in better-auth's form, actions by resource.
	Permissions map[string][]string `json:"permissions"`
}

func newKeyJSON(k *account.Key) keyJSON {
	return keyJSON{
		ID: k.ID.String(), Name: k.Name, Start: k.Start, Prefix: "sk_" + string(k.Environment) + "_",
		Environment: k.Environment, Enabled: k.Enabled,
		ExpiresAt: transfer.OptionalTimestamp(k.ExpiresAt), LastUsedAt: transfer.OptionalTimestamp(k.LastUsedAt),
		CreatedAt: transfer.NewTimestamp(k.CreatedAt), UpdatedAt: transfer.NewTimestamp(k.UpdatedAt),
		RateLimitEnabled: true, RateLimitMax: k.Limit.Requests,
		RateLimitTimeWindow: int64(k.Limit.Period / time.Millisecond),
		Scopes:              k.Scopes.Names(), Networks: append([]netip.Prefix{}, k.Networks...), Permissions: permissions(k.Scopes),
	}
}

// permissions returns the actions that scopes allow, by resource. The scope webhooks allows reading and writing.
func permissions(scopes apikey.Scopes) map[string][]string {
	all := map[string][]string{}
	for _, name := range scopes.Names() {
		if resource, action, divided := strings.Cut(name, ":"); divided {
			all[resource] = append(all[resource], action)
		} else {
			all[resource] = []string{"read", "write"}
		}
	}
	return all
}

// writeShownKey writes a new key with its complete text.
func writeShownKey(w http.ResponseWriter, k *account.Key, text apikey.Key) error {
	return route.WriteJSON(w, http.StatusOK, struct {
		keyJSON
		Key string `json:"key"`
	}{newKeyJSON(k), text.Reveal()})
}

// parseID returns account.ErrNotFound for a malformed id, as for a key or session that does not exist.
func parseID(s string) (uuid.UUID, error) {
	id, ok := route.ParseUUID(s)
	if !ok {
		return uuid.Nil, account.ErrNotFound
	}
	return id, nil
}
