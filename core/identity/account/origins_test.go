package account_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

func TestParseOrigins(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://app.example.com":             "https://app.example.com",
		"HTTPS://App.Example.com":             "https://app.example.com",
		"https://app.example.com:443":         "https://app.example.com",
		"https://app.example.com:8443":        "https://app.example.com:8443",
		"https://xn--bcher-kva.ch":            "https://xn--bcher-kva.ch",
		"https://localhost":                   "https://localhost",
		"https://203.0.113.7":                 "https://203.0.113.7",
		"https://[2001:db8::1]:8443":          "https://[2001:db8::1]:8443",
		"http://localhost:3000":               "http://localhost:3000",
		"http://localhost:80":                 "http://localhost",
		"http://shop.localhost":               "http://shop.localhost",
		"http://127.0.0.1:5173":               "http://127.0.0.1:5173",
		"http://[::1]:5173":                   "http://[::1]:5173",
		"http://app.example.com":              "", // not this machine
		"http://203.0.113.7":                  "",
		"http://localhost.example.com":        "",
		"https://app.example.com/":            "",
		"https://app.example.com/pay":         "",
		"https://app.example.com?a":           "",
		"https://app.example.com#a":           "",
		"https://ann@app.example.com":         "",
		"https://app.example.com:":            "",
		"https://app.example.com:0":           "",
		"https://app.example.com:08":          "",
		"https://app.example.com:70000":       "",
		"https://*.example.com":               "",
		"https://bücher.ch":                   "",
		"https://app.example.com.":            "",
		"https://app_.example.com":            "",
		"https://[2001:DB8:0::1]":             "",
		"https://[::ffff:203.0.113.7]":        "",
		"https://[fe80::1%25eth0]":            "",
		"https://app.example.com\n":           "",
		" https://app.example.com":            "",
		"https://a b":                         "",
		"https://":                            "",
		"app.example.com":                     "",
		"chrome-extension://abc":              "",
		"null":                                "",
		"*":                                   "",
		"":                                    "",
		"https://" + strings.Repeat("a", 300): "",
	} {
		got, err := account.ParseOrigins([]string{text})
		if invalid := (*account.InvalidError)(nil); errors.As(err, &invalid) != (want == "") {
			t.Errorf("ParseOrigins(%q): %v", text, err)
		} else if err == nil && got[0] != want {
			t.Errorf("ParseOrigins(%q) = %s, want %s", text, got[0], want)
		}
	}
}

func TestParseOrigins_List(t *testing.T) {
	t.Parallel()
	got, err := account.ParseOrigins([]string{"https://b.example", "https://a.example:443", "https://a.example"})
	if diff := cmp.Diff([]string{"https://a.example", "https://b.example"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := account.ParseOrigins(nil); err != nil || got == nil || len(got) != 0 {
		t.Errorf("none: %v, %v", got, err)
	}
	var many []string
	for n := range 21 {
		many = append(many, fmt.Sprintf("https://a%d.example", n))
	}
	if _, err := account.ParseOrigins(many[:20]); err != nil {
		t.Error(err)
	}
	if _, err := account.ParseOrigins(many); err == nil || err.Error() != "origins must be at most 20" {
		t.Errorf("21: %v", err)
	}
}

// What is accepted is accepted again as it is.
func FuzzParseOrigins(f *testing.F) {
	f.Add("https://app.example.com:443")
	f.Add("http://[::1]:80")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := account.ParseOrigins([]string{text})
		if err != nil {
			return
		}
		if again, err := account.ParseOrigins(once); err != nil || !slices.Equal(once, again) {
			t.Fatalf("%q is %q, and that is %q: %v", text, once, again, err)
		}
	})
}

func TestKeyRules_OriginsIn(t *testing.T) {
	t.Parallel()
	rules := account.KeyRules{Origins: []string{"http://localhost:3000", "https://app.example.com"}}
	for env, want := range map[network.Environment][]string{network.Test: rules.Origins, network.Live: rules.Origins[1:]} {
		if diff := cmp.Diff(want, rules.OriginsIn(env)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", env, diff)
		}
	}
}
