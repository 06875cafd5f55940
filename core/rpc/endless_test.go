package rpc_test

import (
	"context"
	"testing"

	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/endless"
)

// A node cannot hold a call for longer than its context.
func TestChain_Verify_EndlessResponses(t *testing.T) {
	t.Parallel()
	endless.WantEnd(t, endless.HTTP, func(ctx context.Context, address string) {
		id := caip.EIP155Chain(1)
		client, err := rpc.NewClient(rpc.Providers{id: {{URL: telemetry.Secret("http://" + address)}}}, rpc.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer client.Close()
		chain, _ := client.Chain(id)
		if chain.Verify(ctx) == nil {
			t.Error("the node counts as one of the chain")
		}
	})
}
