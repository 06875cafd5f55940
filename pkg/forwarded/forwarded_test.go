package forwarded_test

import (
	"net/netip"
	"testing"

	"intents.internal/pkg/forwarded"
)

func TestParseAddr(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "203.0.113.7:5678": "203.0.113.7", "203.0.113.7:0": "203.0.113.7",
		"2001:db8::1": "2001:db8::1", "2001:DB8:0::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "[2001:db8::1]:443": "2001:db8::1",
		"2001:db8::1:443": "2001:db8::1:443", "::1": "::1", "[::]:1": "::",
		"::ffff:203.0.113.7": "203.0.113.7", "[::ffff:203.0.113.7]:80": "203.0.113.7", "fe80::1%eth0": "fe80::1", "[fe80::1%eth0]:1": "fe80::1",

		"": "", "unknown": "", "_hidden": "", "203.0.113.7:": "", "203.0.113.7:65536": "", "203.0.113.7:+1": "", "203.0.113.7:http": "", ":80": "",
		"[203.0.113.7]": "", "[203.0.113.7]:80": "", "[2001:db8::1": "", "[2001:db8::1]443": "", "[2001:db8::1]:": "", "[2001:db8::1]]": "", "[]": "", "[": "",
		"2001:db8::1]": "", `"203.0.113.7"`: "", "203.0.113.7, 10.0.0.1": "", " 203.0.113.7": "", "203.0.113": "", "client.example": "", "unix:": "",
	} {
		got, ok := forwarded.ParseAddr(text)
		if ok != (want != "") || ok && got != netip.MustParseAddr(want) {
			t.Errorf("%q: %s, %t, want %q", text, got, ok, want)
		}
	}
}

//nolint:paralleltest // it counts allocations
func TestParseAddr_NoAllocation(t *testing.T) {
	for _, text := range []string{"203.0.113.7", "203.0.113.7:5678", "2001:db8::1", "[2001:db8::1]:443"} {
		if n := testing.AllocsPerRun(100, func() { forwarded.ParseAddr(text) }); n != 0 {
			t.Errorf("%s: %g allocations", text, n)
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	for _, seed := range []string{"203.0.113.7:5678", "[2001:db8::1]:443", "fe80::1%eth0", "[::ffff:1.2.3.4]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, ok := forwarded.ParseAddr(text)
		if !ok {
			return
		}
		if again, ok := forwarded.ParseAddr(address.String()); !ok || again != address || address.Is4In6() || address.Zone() != "" {
			t.Errorf("%q is %s, and that is %s", text, address, again)
		}
	})
}
