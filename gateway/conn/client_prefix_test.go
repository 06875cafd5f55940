package conn_test

import (
	"net/netip"
	"testing"

	"intents.internal/gateway/conn"
)

func TestClientPrefix(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7":            "192.0.2.7",
		"::ffff:192.0.2.7":     "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::",
		"2001:db8:1:2:ffff::1": "2001:db8:1:2::",
		"fe80::1%eth0":         "fe80::",
	} {
		if got := conn.ClientPrefix(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := conn.ClientPrefix(netip.Addr{}); got.IsValid() {
		t.Errorf("no address: %s", got)
	}
}
