package keys_test

import (
	"testing"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/metricstest"
)

// The cache of verdicts shows how full it is, and how full it can be.
func TestVerifier_CacheMetrics(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core)
	for range 2 {
		key := core.AddKey(network.Test)
		v.awaitFeed(t, core) // or its change would drop the verdict again
		v.mustAccept(t, key)
	}
	got := metricstest.Values(t, v.registry)
	if held, most := got["intents_gateway_key_verdicts_held"], got["intents_gateway_key_verdicts_limit"]; held != 2 || most != 1000 {
		t.Errorf("%v of %v verdicts are held, want 2 of 1000", held, most)
	}
}
