package siwe_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"intents.internal/core/identity/siwe"
)

const address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

// full has every field, bare only those that must be there.
const (
	full = `https://intents.example:8443 wants you to sign in with your Ethereum account:
` + address + `

I accept the Terms: https://intents.example/tos (v2).

URI: https://intents.example:8443/console?a=b%20c#d
Version: 1
Chain ID: 11155111
Nonce: 3289Ab56
Issued At: 2026-11-21T12:00:00.123Z
Expiration Time: 2026-11-21t13:05:00+01:00
Not Before: 2026-11-21T12:00:00Z
Request ID: a-b_c~%20:@
Resources:
- ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/
- urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6`
	bare = `intents.example wants you to sign in with your Ethereum account:
` + address + `


URI: https://intents.example
Version: 1
Chain ID: 1
Nonce: 32891756
Issued At: 2026-11-21T12:00:00Z`
)

func TestParse(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	minimal := siwe.Message{
		Domain: "intents.example", Address: address, URI: "https://intents.example", ChainID: 1, Nonce: "32891756", IssuedAt: noon,
	}
	withResources := minimal
	withResources.Resources = []string{"a:"}
	for text, want := range map[string]siwe.Message{
		full: {
			Scheme: "https", Domain: "intents.example:8443", Address: address,
			Statement: "I accept the Terms: https://intents.example/tos (v2).",
			URI:       "https://intents.example:8443/console?a=b%20c#d", ChainID: 11155111, Nonce: "3289Ab56",
			IssuedAt: noon.Add(123 * time.Millisecond), ExpirationTime: noon.Add(5 * time.Minute), NotBefore: noon,
			RequestID: "a-b_c~%20:@", Resources: []string{
				"ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/",
				"urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
			},
		},
		bare: minimal,
		// What the grammar lets be empty.
		strings.Replace(bare, "\n\n\n", "\n\n\n\n", 1): minimal,
		bare + "\nRequest ID: \nResources:":            minimal,
		bare + "\nResources:\n- a:":                    withResources,
	} {
		got, err := siwe.Parse(text)
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
			continue
		}
		if diff := cmp.Diff(want, *got, cmpopts.IgnoreUnexported(siwe.Message{})); diff != "" {
			t.Errorf("(-want +got):\n%s\nof\n%s", diff, text)
		}
	}
}

func TestParse_Invalid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, new string
		line           int
	}{
		{"nothing", full, "", 1},
		{"trailing line feed", "a765-00a0c91e6bf6", "a765-00a0c91e6bf6\n", 17},
		{"trailing space", "a765-00a0c91e6bf6", "a765-00a0c91e6bf6 ", 16},
		{"trailing garbage", "a765-00a0c91e6bf6", "a765-00a0c91e6bf6\nNonce: 12345678", 17},
		{"leading space", "https://intents.example:8443 wants", " https://intents.example:8443 wants", 1},
		{"carriage returns", "\n", "\r\n", 1},
		{"another greeting", "wants you to sign in", "wants you to Sign in", 1},
		{"no domain", "https://intents.example:8443 wants", "https:// wants", 1},
		{"two domains", "https://intents.example:8443 wants", "intents.example evil.example wants", 1},
		{"a path in the domain", "intents.example:8443 wants", "intents.example/ wants", 1},
		{"a domain in Unicode", "https://intents.example:8443 wants", "https://intentѕ.example wants", 1},
		{"address in lower case", address, strings.ToLower(address), 2},
		{"address in upper case", address, "0x" + strings.ToUpper(address[2:]), 2},
		{"address with a wrong checksum", address, strings.Replace(address, "f39F", "F39F", 1), 2},
		{"short address", address, address[:41], 2},
		{"no blank line before the statement", "\n\nI accept", "\nI accept", 3},
		{"no blank line after the statement", "(v2).\n", "(v2).", 5},
		{"statement of two lines", "I accept ", "I\naccept ", 5},
		{"statement beyond ASCII", "I accept", "I açcept", 4},
		{"statement with a quote", "I accept", `I "accept"`, 4},
		{"relative URI", "URI: https://intents.example:8443/", "URI: /", 6},
		{"URI with a space", "/console?", "/con sole?", 6},
		{"URI with a half escape", "%20c#d", "%2#d", 6},
		{"URI with two fragments", "#d", "#d#e", 6},
		{"no URI", "URI: https://intents.example:8443/console?a=b%20c#d\n", "", 6},
		{"label in lower case", "URI: ", "uri: ", 6},
		{"version 2", "Version: 1", "Version: 2", 7},
		{"version 1.0", "Version: 1", "Version: 1.0", 7},
		{"no chain id", "Chain ID: 11155111\n", "", 8},
		{"chain id 0", "Chain ID: 11155111", "Chain ID: 0", 8},
		{"chain id with a zero before", "Chain ID: 11155111", "Chain ID: 01", 8},
		{"chain id with a sign", "Chain ID: 11155111", "Chain ID: +1", 8},
		{"chain id beyond 2^53-1", "Chain ID: 11155111", "Chain ID: 9007199254740992", 8},
		{"short nonce", "3289Ab56", "3289Ab5", 9},
		{"nonce with a dash", "3289Ab56", "3289-Ab56", 9},
		{"two nonces", "Nonce: 3289Ab56", "Nonce: 3289Ab56\nNonce: 3289Ab56", 10},
		{"fields in another order", "Not Before: 2026-11-21T12:00:00Z\nRequest ID: a-b_c~%20:@", "Request ID: a\nNot Before: 2026-11-21T12:00:00Z", 13},
		{"no issued-at", "Issued At: 2026-11-21T12:00:00.123Z\n", "", 10},
		{"date without a time", "Issued At: 2026-11-21T12:00:00.123Z", "Issued At: 2026-11-21", 10},
		{"time without a zone", "12:00:00.123Z", "12:00:00.123", 10},
		{"time with a comma", "12:00:00.123Z", "12:00:00,123Z", 10},
		{"zone of 24 hours", "13:05:00+01:00", "13:05:00+24:00", 11},
		{"no such day", "Not Before: 2026-11-21", "Not Before: 2026-11-31", 12},
		{"request id with a slash", "a-b_c", "a/b", 13},
		{"a resource beside the label", "Resources:\n- ipfs", "Resources: ipfs", 14},
		{"a resource that is no URI", "- urn:uuid", "- urn uuid", 16},
	} {
		text := strings.Replace(full, c.old, c.new, 1)
		if text == full {
			t.Errorf("%s: the message is as it was", c.name)
		}
		_, err := siwe.Parse(text)
		if syntax, ok := errors.AsType[*siwe.SyntaxError](err); !ok || syntax.Line != c.line {
			t.Errorf("%s: %v, want an error in line %d", c.name, err, c.line)
		}
	}
}

// grammar is the whole message as one pattern, URIs but roughly.
var grammar = regexp.MustCompile(`\A(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([!$&'-.0-;=@A-Z\[\]_a-z~%]+) wants you to sign in with your Ethereum account:\n` +
	`(0x[0-9A-Fa-f]{40})\n\n(?:([!#$&'()*+,/:;=?@\[\]A-Za-z0-9._~ -]*)\n)?\n` +
	`URI: ([A-Za-z][A-Za-z0-9+.-]*:[!#$%&'()*+,/:;=?@\[\]A-Za-z0-9._~-]*)\nVersion: 1\nChain ID: ([0-9]+)\nNonce: ([A-Za-z0-9]{8,})\n` +
	`Issued At: ([0-9TtZz:.+-]+)(?:\nExpiration Time: ([0-9TtZz:.+-]+))?(?:\nNot Before: ([0-9TtZz:.+-]+))?` +
	`(?:\nRequest ID: ([!$%&'()*+,:;=@A-Za-z0-9._~-]*))?(?:\nResources:((?:\n- [!-~]+)*))?\z`)

// What Parse takes is in the grammar, and each field is what the grammar says.
func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add(bare)
	f.Add(bare + "\nRequest ID: \nResources:")
	f.Add(strings.Replace(full, "https://", "", 1))
	f.Add(strings.Replace(bare, "\n\n\n", "\n\nURI: a:\n\n", 1))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := siwe.Parse(text)
		if err != nil {
			return
		}
		want := grammar.FindStringSubmatch(text)
		if want == nil {
			t.Fatalf("%q is taken", text)
		}
		resources := ""
		for _, r := range m.Resources {
			resources += "\n- " + r
		}
		got := []string{m.Scheme, m.Domain, m.Address, m.Statement, m.URI, strconv.FormatUint(m.ChainID, 10), m.Nonce}
		if diff := cmp.Diff(want[1:8], got); diff != "" {
			t.Errorf("(-grammar +got):\n%s", diff)
		}
		if diff := cmp.Diff(want[11:], []string{m.RequestID, resources}); diff != "" {
			t.Errorf("(-grammar +got):\n%s", diff)
		}
		for i, at := range []time.Time{m.IssuedAt, m.ExpirationTime, m.NotBefore} {
			if given := want[8+i]; (given == "") != at.IsZero() && !strings.HasPrefix(given, "0001") && !strings.HasPrefix(given, "0000") {
				t.Errorf("time %q is read as %s", given, at)
			}
		}
	})
}
