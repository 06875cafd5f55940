package provider_test

import (
	"context"
	"testing"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
	endlessly "intents.internal/pkg/testkit/endless"
)

// A provider cannot hold a request for longer than its context.
func TestProvider_Ask_EndlessResponses(t *testing.T) {
	t.Parallel()
	endlessly.WantEnd(t, endlessly.HTTP, func(ctx context.Context, address string) {
		if offers, failure := newSubject(t, at(provider.OIF, "http://"+address), nil).Ask(ctx, account, route(quote.ExactInput), now); failure == nil {
			t.Errorf("%d offers", len(offers))
		}
	})
}
