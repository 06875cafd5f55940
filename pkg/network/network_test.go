package network_test

import (
	"testing"

	"intents.internal/pkg/network"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"test": true, "live": true, "": false, "TEST": false, "main": false, " live": false} {
		env, err := network.Parse(text)
		if (err == nil) != ok || (ok && string(env) != text) {
			t.Errorf("Parse(%q) = %q, %v; want ok = %t", text, env, err, ok)
		}
	}
}
