package loopback_test

import (
	"testing"

	"intents.internal/pkg/loopback"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]struct{ host, name bool }{
		"localhost":             {true, true},
		"shop.localhost":        {false, true},
		"127.0.0.1":             {true, false},
		"127.8.0.1":             {true, false},
		"::1":                   {true, false},
		"::ffff:127.0.0.1":      {true, false},
		"localhost.example.org": {},
		"notlocalhost":          {},
		"127.0.0.1.example.org": {},
		"127.1":                 {},
		"10.0.0.1":              {},
		"0.0.0.0":               {},
		"":                      {},
	} {
		if loopback.IsHost(host) != want.host || loopback.IsName(host) != want.name {
			t.Errorf("%q: host %t, name %t", host, loopback.IsHost(host), loopback.IsName(host))
		}
	}
}
