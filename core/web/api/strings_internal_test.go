package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/telemetry"
)

// stringSchema is what a schema says of a string, and of the values in it.
type stringSchema struct {
	Ref                 string `json:"$ref"`
	Type                any
	Enum                []any
	Const               any
	Pattern, Format     string
	MaxLength           *int
	Items               *stringSchema
	Properties          map[string]*stringSchema
	AllOf, OneOf, AnyOf []*stringSchema
}

// stringsOfRequests calls with each string of the parameters and bodies of the document's requests, headers aside.
func stringsOfRequests(t *testing.T, with func(place, name string, schema *stringSchema)) {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	at := func(ref string) any {
		var found any = document
		for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			found = found.(map[string]any)[name]
		}
		return found
	}
	as := func(raw, into any) {
		text, err := json.Marshal(raw)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var walk func(place, name string, s *stringSchema, within []string)
	walk = func(place, name string, s *stringSchema, within []string) {
		if s.Ref != "" {
			if slices.Contains(within, s.Ref) {
				return
			}
			var of stringSchema
			as(at(s.Ref), &of)
			within, s = append(slices.Clip(within), s.Ref), &of
		}
		if strings.Contains(fmt.Sprint(s.Type), "string") {
			with(place, name, s)
		}
		for _, one := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
			walk(place, name, one, within)
		}
		if s.Items != nil {
			walk(place, name, s.Items, within)
		}
		for member, of := range s.Properties {
			walk(place, member, of, within)
		}
	}
	var paths map[string]map[string]json.RawMessage
	as(document["paths"], &paths)
	for path, operations := range paths {
		for method, raw := range operations {
			var operation struct {
				Parameters  []json.RawMessage
				RequestBody struct {
					Content map[string]struct{ Schema stringSchema }
				}
			}
			if method == "parameters" {
				as(raw, &operation.Parameters)
			} else {
				as(raw, &operation)
			}
			for _, raw := range operation.Parameters {
				parameter := struct {
					Ref      string `json:"$ref"`
					Name, In string
					Schema   stringSchema
				}{}
				as(raw, &parameter)
				if parameter.Ref != "" {
					as(at(parameter.Ref), &parameter)
				}
				if parameter.In != "header" {
					walk(method+" "+path, parameter.Name, &parameter.Schema, nil)
				}
			}
			for _, content := range operation.RequestBody.Content {
				walk(method+" "+path, "", &content.Schema, nil)
			}
		}
	}
}

// opaque are the strings that are compared with what is known, or ignored, and never parsed.
var opaque = []string{
	"password", "currentPassword", "token", "invitationId", "id", "code", "state", "error", "accountId", "providerId",
	"image", "prefix", "slug", "email", "callbackURL",
	"message", // of EIP-4361, whose grammar no pattern has
}

// A string of a request says what it may be.
func TestDocument_Strings(t *testing.T) {
	t.Parallel()
	seen := 0
	stringsOfRequests(t, func(place, name string, s *stringSchema) {
		seen++
		if s.Enum == nil && s.Const == nil && s.Pattern+s.Format == "" && s.MaxLength == nil && !slices.Contains(opaque, name) {
			t.Errorf("%s: %s has neither enum, pattern, format nor maxLength", place, name)
		}
	})
	if seen < 100 {
		t.Errorf("only %d strings", seen)
	}
}

// Whatever the decoder takes matches the pattern of the document, and these that it refuses do not.
func TestDocument_Grammars(t *testing.T) {
	t.Parallel()
	service := identity.New(identity.Config{PublicURL: "https://intents.example.com", Metrics: telemetry.NewRegistry()})
	site := func(text string) error { _, err := service.SitePath("", text); return err }
	path := func(text string) error {
		if text != "" && !identity.LocalPath(text) {
			return errors.New("no path of this site")
		}
		return nil
	}
	network := func(text string) error { _, err := account.ParseNetworks([]string{text}); return err }
	cursor := func(text string) error { _, err := webhooks.ParseDeliveryCursor(text); return err }
	last := webhooks.DeliveryCursor{Position: 1<<63 - 1, EventID: feed.ID(uuid.Max)}.String()
	sites := []string{"", "/", "/console", "/console?a=b#c", "//evil.example.com", `/\evil.example.com`, "/a b", "console", "/a\tb", "/é"}
	for name, c := range map[string]struct {
		decode func(string) error
		given  []string
	}{
		"networks": {network, []string{
			"203.0.113.7", "203.0.113.0/24", "2001:db8::/32", "::", "::ffff:203.0.113.7", "2001:DB8::1", "", "localhost", "fe80::1%eth0", "203.0.113.0/24 ", "203.0.113.0/",
		}},
		"redirectTo":  {site, append(sites, "https://intents.example.com", "https://intents.example.com/console", "javascript:alert(1)")},
		"callbackURL": {site, append(sites, "https://intents.example.com/console")},
		"start":       {path, append(sites, "https://intents.example.com/console")},
		"after": {cursor, []string{
			webhooks.DeliveryCursor{}.String(), last, strings.Repeat("_", 32), last[:31], last + "A", "+" + last[1:], "",
		}},
	} {
		for pattern := range patternsOf(t, name) {
			for _, text := range c.given {
				if err := c.decode(text); regexp.MustCompile(pattern).MatchString(text) != (err == nil) {
					t.Errorf("%s: %q matches %s is not what the decoder says: %v", name, text, pattern, err)
				}
			}
		}
	}
}

// patternsOf are the patterns of a member, with the places that have them. start is callbackURL where a sign-in with a provider starts.
func patternsOf(t *testing.T, name string) map[string][]string {
	t.Helper()
	patterns := map[string][]string{}
	stringsOfRequests(t, func(place, member string, s *stringSchema) {
		starts := strings.HasSuffix(place, "/oauth2") || strings.HasSuffix(place, "/oauth2/link")
		if member == "callbackURL" && starts {
			member = "start"
		}
		if member == name && s.Pattern != "" && (name != "after" || strings.HasSuffix(place, "/deliveries")) {
			patterns[s.Pattern] = append(patterns[s.Pattern], place)
		}
	})
	if len(patterns) == 0 {
		t.Errorf("%s has no pattern", name)
	}
	return patterns
}
