package identity_test

import (
	"context"
	"log/slog"
	"testing"

	"intents.internal/core/identity"
	"intents.internal/pkg/testkit/endless"
)

// A provider cannot hold discovery for longer than its context.
func TestOIDC_Discover_EndlessResponses(t *testing.T) {
	t.Parallel()
	endless.WantEnd(t, endless.HTTP, func(ctx context.Context, address string) {
		config := identity.OIDCConfig{Issuer: "http://" + address, ClientID: "intents", ClientSecret: "secret"}
		identity.NewOIDC(config, "http://intents.example").Discover(ctx, slog.New(slog.DiscardHandler))
	})
}
