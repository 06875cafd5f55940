package account_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
)

func TestParseNetworks(t *testing.T) {
	t.Parallel()
	for texts, want := range map[string]string{
		"":                                  "[]",
		"0.0.0.0/0":                         "[0.0.0.0/0]",
		"::/0":                              "[::/0]",
		"10.0.0.1":                          "[10.0.0.1/32]",
		"10.1.2.3/8":                        "[10.0.0.0/8]",
		"10.1.2.3/8 10.9.9.9/8 10.0.0.0/8":  "[10.0.0.0/8]",
		"192.0.2.1 10.0.0.0/8 192.0.2.1/32": "[10.0.0.0/8 192.0.2.1/32]",
		"10.0.0.0/8 10.0.0.0/16":            "[10.0.0.0/8 10.0.0.0/16]",
		"2001:DB8::1/32":                    "[2001:db8::/32]",
		"::1 127.0.0.1":                     "[127.0.0.1/32 ::1/128]",
		"::ffff:10.0.0.1 10.0.0.1":          "[10.0.0.1/32]",
		"::ffff:10.1.2.3/104":               "[10.0.0.0/8]",
		"::ffff:0:0/96":                     "[0.0.0.0/0]",
		"::ffff:a00:1/128":                  "[10.0.0.1/32]",
		"255.255.255.255/32 ffff::ffff/128": "[255.255.255.255/32 ffff::ffff/128]",
		strings.Repeat("10.0.0.1 ", 1000):   "[10.0.0.1/32]",
		strings.Join(manyNetworks(32), " "): fmt.Sprint(manyNetworks(32)),
		"0000:0000:0000:0000:0000:0000:0:1": "[::1/128]",
	} {
		got, err := account.ParseNetworks(strings.Fields(texts))
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("ParseNetworks(%q) = %s, %v; want %s", texts, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "a", "example.com", "10.0.0.1 ", " 10.0.0.1", "10.0.0", "10.0.0.256", "010.0.0.1", "0x0a000001", "10.0.0.1:80", "10.0.0.0/",
		"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/08", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0", "/8", "10.0.0.*", "10.0.0.1-10.0.0.9",
		"2001:db8::/129", "2001:db8", "[::1]", "fe80::1%eth0", "::ffff:10.0.0.1%eth0", "fe80::1%eth0/64", "fe80::/10%eth0", "::ffff:0:0/95", "::ffff:10.0.0.1/8",
		"10.0.0.0/8,192.0.2.1", "10.0.0.0/8\x00", strings.Repeat("1", 10_000), "１０.0.0.1",
	} {
		var invalid *account.InvalidError
		got, err := account.ParseNetworks([]string{"10.0.0.1", text})
		if !errors.As(err, &invalid) || invalid.Field != "networks" || got != nil || len(err.Error()) > 300 {
			t.Errorf("ParseNetworks(%.99q) = %s, %v", text, got, err)
		}
	}
	var invalid *account.InvalidError
	if _, err := account.ParseNetworks(manyNetworks(33)); !errors.As(err, &invalid) || invalid.Message != "must be at most 32" {
		t.Errorf("33 networks: %v", err)
	}
}

// manyNetworks are different networks, sorted.
func manyNetworks(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.%d.0.0/16", i)
	}
	return all
}

// What is parsed is canonical: it is masked, sorted, without a duplicate or an IPv4-mapped address, and parses to itself.
func FuzzParseNetworks(f *testing.F) {
	for _, seed := range []string{"10.1.2.3/8 10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:0:0/96", "2001:db8::1/32 ::1", "fe80::1%eth0", "0.0.0.0/0", "::/0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		texts := strings.Split(list, " ")
		networks, err := account.ParseNetworks(texts)
		if err != nil {
			return
		}
		again := make([]string, len(networks))
		for i, n := range networks {
			if again[i] = n.String(); !n.IsValid() || n != n.Masked() || n.Addr().Is4In6() || i > 0 && networks[i-1].Compare(n) >= 0 {
				t.Errorf("%q has %s after %s", list, n, networks[:i])
			}
		}
		if same, err := account.ParseNetworks(again); err != nil || !slices.Equal(same, networks) {
			t.Errorf("%q is %s, which parses to %s, %v", list, networks, same, err)
		}
		for _, text := range texts { // each address that was given is allowed
			address, _, _ := strings.Cut(text, "/")
			given := netip.MustParseAddr(address).Unmap()
			if !slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(given) }) {
				t.Errorf("%s is not in %s of %q", given, networks, list)
			}
		}
	})
}

func TestParseScopes(t *testing.T) {
	t.Parallel()
	if got, err := account.ParseScopes([]string{"webhooks", "intents:read"}); err != nil || got != apikey.Webhooks|apikey.IntentsRead {
		t.Errorf("%q, %v", got.Names(), err)
	}
	for _, names := range [][]string{nil, {}, {""}, {"intents:*"}, {"webhooks", "WEBHOOKS"}} {
		var invalid *account.InvalidError
		if got, err := account.ParseScopes(names); !errors.As(err, &invalid) || got != 0 ||
			err.Error() != "scopes must be one or more of intents:read, intents:write, webhooks" {
			t.Errorf("ParseScopes(%q) = %q, %v", names, got.Names(), err)
		}
	}
}

func TestKey_Restrictions(t *testing.T) {
	t.Parallel()
	office := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	key := newKey(t, account.KeyRequest{Name: "a"})
	if key.Restricted() || key.Scopes != apikey.AllScopes || key.Networks != nil {
		t.Errorf("a key with no restrictions: %+v", key)
	}
	for _, step := range []struct {
		change     account.KeyChange
		detail     string
		restricted bool
	}{
		{account.KeyChange{Scopes: new(apikey.AllScopes), Networks: new([]netip.Prefix)}, "", false},
		{account.KeyChange{Scopes: new(apikey.IntentsRead | apikey.Webhooks)}, "scopes intents:read webhooks", true},
		{account.KeyChange{Name: new("b")}, `name "a" → "b"`, true},
		{account.KeyChange{Networks: &office, Enabled: new(false)}, "disabled, networks 10.0.0.0/8 2001:db8::/32", true},
		{account.KeyChange{Networks: new(slices.Clone(office))}, "", true},
		{account.KeyChange{Scopes: new(apikey.AllScopes)}, "scopes intents:read intents:write webhooks", true},
		{account.KeyChange{Networks: new([]netip.Prefix)}, "any network", false},
	} {
		if got, err := key.Change(step.change, noon); err != nil || got != step.detail || key.Restricted() != step.restricted {
			t.Errorf("Change = %q, %v; want %q. Restricted is %v", got, err, step.detail, key.Restricted())
		}
	}

	key = newKey(t, account.KeyRequest{Name: "a", Scopes: apikey.IntentsWrite, Networks: office})
	if got, want := key.Describe(), "test key, never expires, scopes intents:write, networks 10.0.0.0/8 2001:db8::/32"; got != want {
		t.Errorf("Describe = %q, want %q", got, want)
	}
	for _, grace := range []time.Duration{time.Hour, 0} {
		next, _, err := key.Rotate(grace, noon)
		if err != nil || next.Scopes != apikey.IntentsWrite || !slices.Equal(next.Networks, office) || !slices.Equal(key.Networks, office) {
			t.Errorf("rotated with %s: %+v, %v", grace, next, err)
		}
		key = next
	}
	if diff := cmp.Diff([]string{"intents:write"}, key.Scopes.Names()); diff != "" {
		t.Error(diff)
	}
}
