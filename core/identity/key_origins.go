package identity

import (
	"context"

	"intents.internal/core/identity/account"
)

// SetOrigins replaces the origins of the account, see Store.SetOrigins.
func (s *Keys) SetOrigins(ctx context.Context, client Client, p *Principal, origins []string) error {
	return s.Store.SetOrigins(ctx, s.Grant(p, Develop), p.Account.ID, origins, s.entry(client, p.Account.ID, account.OriginsChanged, ""))
}
