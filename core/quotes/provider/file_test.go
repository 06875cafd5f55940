package provider_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/outbound"
	"intents.internal/core/quotes/provider"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

func readText(t *testing.T, text string) ([]provider.Endpoint, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quotes.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return provider.ReadFile(path)
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	got, err := readText(t, `[
		{"name": "lifi", "kind": "lifi", "url": "https://order.li.fi", "environment": "live", "deployment": "lifi-v2", "timeoutMs": 100,
			"accountRequestsPerMinute": 200,
			"headers": {"x-integrator-key": "s3cret"}},
		{"name": "solver-1", "kind": "oif", "url": "http://127.0.0.1:8080/base?key=s3cret", "environment": "test", "deployment": "local",
			"orders": true}
	]`)
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Endpoint{
		{
			Name: "lifi", Kind: provider.LIFI, URL: "https://order.li.fi", Environment: network.Live, Deployment: "lifi-v2", Timeout: 100 * time.Millisecond,
			AccountRequests: 200, Headers: map[string]telemetry.Secret{"X-Integrator-Key": "s3cret"},
		},
		{
			Name: "solver-1", Kind: provider.OIF, URL: "http://127.0.0.1:8080/base?key=s3cret", Environment: network.Test, Deployment: "local",
			Timeout: 2 * time.Second, AccountRequests: 60, Orders: true, Headers: map[string]telemetry.Secret{},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if printed := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(printed, "s3cret") {
		t.Error(printed)
	}
}

// entry is a valid provider with one member replaced; an empty value leaves it out.
func entry(member, value string) string {
	text := `{"name": "a", "kind": "oif", "url": "https://a.example/s3cret", "environment": "test", "deployment": "d"`
	for _, pair := range [][2]string{
		{"name", `"a"`}, {"kind", `"oif"`}, {"url", `"https://a.example/s3cret"`}, {"environment", `"test"`}, {"deployment", `"d"`},
	} {
		if pair[0] == member {
			return strings.Replace(text, `"`+pair[0]+`": `+pair[1], `"`+pair[0]+`": `+value, 1) + "}"
		}
	}
	return text + `, "` + member + `": ` + value + "}"
}

func TestReadFile_Faults(t *testing.T) {
	t.Parallel()
	many := strings.TrimSuffix(strings.Repeat(entry("name", `"a"`)+",", 33), ",")
	for _, test := range []struct{ text, fault string }{
		{`[`, "line 1: must be one JSON list"},
		{"[\n{\"url\": \"https://a.example/s3cret\",\n\"url\": \"\"}]", "line 3: must be one JSON list"},
		{`null`, "must be one JSON list"},
		{`{}`, "must be one JSON list"},
		{`[]`, "must be one JSON list"},
		{`[` + many + `]`, "the list: has 33 providers, over the limit of 32"},
		{`[7]`, "[0]: must be an object"},
		{`[null]`, "[0]: must be an object"},
		{`[` + entry("s3cret", `"s3cret"`) + `]`, "[0]: must be an object"},
		{`[` + entry("Name", `"a"`) + `]`, "[0]: must be an object"},
		{`[` + entry("orders", `"true"`) + `]`, "[0]: must be an object"},
		{`[` + strings.Replace(entry("orders", `true`), "oif", "lifi", 1) + `]`, `a: orders needs the kind "oif"`},
		{`[` + entry("timeoutMs", `1.5`) + `]`, "[0]: must be an object"},
		{`[` + entry("headers", `["s3cret"]`) + `]`, "[0]: must be an object"},
		{`[` + entry("name", `"A s3cret"`) + `]`, "[0]: name must have"},
		{`[` + entry("name", `"`+strings.Repeat("a", 33)+`"`) + `]`, "[0]: name must have"},
		{`[` + entry("name", `""`) + `]`, "[0]: name must have"},
		{`[` + entry("name", `"a"`) + `,` + entry("name", `"a"`) + `]`, "[1]: the name a is that of [0] too"},
		{`[` + entry("kind", `"s3cret"`) + `]`, `a: kind must be "lifi" or "oif"`},
		{`[` + entry("environment", `"s3cret"`) + `]`, `a: environment must be "test" or "live"`},
		{`[` + entry("deployment", `"s3cret!"`) + `]`, "a: deployment must be"},
		{`[` + entry("deployment", `""`) + `]`, "a: deployment must be"},
		{`[` + entry("timeoutMs", `99`) + `]`, "a: timeoutMs must be from 100 to 2000"},
		{`[` + entry("timeoutMs", `2001`) + `]`, "a: timeoutMs must be from 100 to 2000"},
		{`[` + entry("timeoutMs", `-9223372036854775808`) + `]`, "a: timeoutMs must be from 100 to 2000"},
		{`[` + entry("timeoutMs", `9223372036854775807`) + `]`, "a: timeoutMs must be from 100 to 2000"},
		{`[` + entry("accountRequestsPerMinute", `0`) + `]`, "a: accountRequestsPerMinute must be from 1 to 60000"},
		{`[` + entry("accountRequestsPerMinute", `60001`) + `]`, "a: accountRequestsPerMinute must be from 1 to 60000"},
		{`[` + entry("accountRequestsPerMinute", `"60"`) + `]`, "[0]: must be an object"},
		{`[` + entry("url", `""`) + `]`, "a: url must begin with https://"},
		{`[` + entry("url", `"a.example/s3cret"`) + `]`, "a: url must begin with https://"},
		{`[` + entry("url", `"ftp://a.example/s3cret"`) + `]`, "a: url must begin with https://"},
		{`[` + entry("url", `"https:///s3cret"`) + `]`, "a: url has no host"},
		{`[` + entry("url", `"https://a.example/%zzs3cret"`) + `]`, "a: url is not a valid URL"},
		{`[` + entry("url", `"https://user:s3cret@a.example"`) + `]`, "a: url has a user or password"},
		{`[` + entry("url", `"https://s3cret@a.example"`) + `]`, "a: url has a user or password"},
		{`[` + entry("url", `"https://a.example/#s3cret"`) + `]`, "a: url has a fragment"},
		{`[` + entry("url", `"https://a.example/#"`) + `]`, "a: url has a fragment"},
		{`[` + strings.Replace(entry("url", `"http://127.0.0.1/s3cret"`), "test", "live", 1) + `]`, "a: url must begin with https:// for live keys"},
		{`[` + entry("headers", `{"s3cret key": "s3cret"}`) + `]`, "a: a header has a name that is no token"},
		{`[` + entry("headers", `{"": "s3cret"}`) + `]`, "a: a header has a name that is no token"},
		{`[` + entry("headers", `{"x-key": ""}`) + `]`, "a: the header X-Key must have a value"},
		{`[` + entry("headers", `{"x-key": "s3cret\r\nx: y"}`) + `]`, "a: the header X-Key must have a value"},
		{`[` + entry("headers", `{"x-key": "s3cret", "X-KEY": "s3cret"}`) + `]`, "a: the header X-Key is named twice"},
		{`[` + entry("headers", `{"host": "s3cret"}`) + `]`, "a: the header Host is set by"},
		{`[` + entry("headers", `{"content-length": "1"}`) + `]`, "a: the header Content-Length is set by"},
		{`[` + entry("headers", `{"connection": "s3cret"}`) + `]`, "a: the header Connection is set by"},
		{`[` + entry("headers", `{"te": "s3cret"}`) + `]`, "a: the header Te is set by"},
		{`[` + entry("headers", `{"Transfer-Encoding": "chunked"}`) + `]`, "a: the header Transfer-Encoding is set by"},
	} {
		_, err := readText(t, test.text)
		switch {
		case err == nil:
			t.Errorf("%s: no error", test.text)
		case !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%s: got %q, want %q and no secret", test.text, err, test.fault)
		}
	}
	_, err := readText(t, `[{"name": "a", "timeoutMs": 1, "headers": {"Host": "x", "te": ""}}, {}, 7]`)
	if want := 8 + 5 + 1; err == nil || strings.Count(err.Error(), "\n")+1 != want {
		t.Errorf("not all faults at once: %v", err)
	}
	if _, err := provider.ReadFile(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is missing")
	}
}

func TestCheckAddresses(t *testing.T) {
	t.Parallel()
	networks := outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	for url, wrong := range map[string]bool{
		"https://order.li.fi": false, "https://localhost": false, "http://127.0.0.1:8080": false, "https://1.1.1.1": false, "https://1.1.1.1:8443": true,
		"http://1.1.1.1/s3cret": true, "http://solver.internal": false, "https://127.0.0.1": false,
		"https://10.0.0.1/s3cret": true, "http://[::1]": true, "http://[::ffff:127.0.0.1]": true, "http://169.254.169.254": true, "https://1.1.1.1:99999": true,
	} {
		endpoints := []provider.Endpoint{{Name: "good", URL: "https://a.example"}, {Name: "named", URL: telemetry.Secret(url)}}
		err := provider.CheckAddresses(endpoints, networks)
		if wrong != (err != nil) || wrong && (!strings.HasPrefix(err.Error(), "named: ") || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: %v", url, err)
		}
		if err := provider.CheckAddresses(endpoints, nil); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		err = provider.CheckAddresses(endpoints, outbound.NewNetworks(nil))
		if strings.HasPrefix(url, "http://") && (err == nil || !strings.HasPrefix(err.Error(), "named: ") || !strings.HasSuffix(err.Error(), "use https://")) {
			t.Errorf("%s without allowed networks: %v", url, err)
		}
	}
}
