package console

import (
	"net/netip"
	"strings"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
)

// restrictionFields are the form's fields for a key's scopes, a checkbox each, and for its networks.
var restrictionFields = append(apikey.AllScopes.Names(), "networks")

// hasRestrictions reports whether the sent form has these fields. A browser also sends text fields that are empty.
func (f *form) hasRestrictions() bool {
	_, sent := f.values["networks"]
	return sent
}

// restrictions parses the scopes whose checkboxes are checked, and the networks, separated by spaces, commas or newlines.
func (f *form) restrictions() (apikey.Scopes, []netip.Prefix, error) {
	var names []string
	for _, name := range apikey.AllScopes.Names() {
		if f.values[name] != "" {
			names = append(names, name)
		}
	}
	scopes, err := account.ParseScopes(names)
	if err != nil {
		return 0, nil, err
	}
	networks, err := account.ParseNetworks(words(f.values["networks"]))
	return scopes, networks, err
}

// restrictionsView shows a key's scopes and networks in a form.
type restrictionsView struct {
	Scopes   []scopeBox
	Networks string
	// ScopesAt and NetworksAt are the help of the fields.
	ScopesAt, NetworksAt fieldHelp
}

// scopeBox is the checkbox of a scope.
type scopeBox struct {
	Name, Text string
	Ticked     bool
}

var scopeTexts = map[string]string{
	"intents:read":  "read intents and events",
	"intents:write": "make, report, cancel and refund intents",
	"webhooks":      "read and change webhooks",
}

// newRestrictionsView shows the form's values, or the given scopes and networks before the form is sent.
func newRestrictionsView(f *form, scopes apikey.Scopes, networks []netip.Prefix) restrictionsView {
	v := restrictionsView{Networks: networkLines(networks), ScopesAt: f.At("scopes", "scopes-hint"), NetworksAt: f.At("networks", "networks-hint")}
	sent := f.hasRestrictions()
	if sent {
		v.Networks = f.values["networks"]
	}
	for _, name := range apikey.AllScopes.Names() {
		ticked := scopes.Has(apikey.ScopeOf(name))
		if sent {
			ticked = f.values[name] != ""
		}
		v.Scopes = append(v.Scopes, scopeBox{Name: name, Text: scopeTexts[name], Ticked: ticked})
	}
	return v
}

func networkLines(networks []netip.Prefix) string {
	lines := make([]string, len(networks))
	for n, network := range networks {
		lines[n] = network.String()
	}
	return strings.Join(lines, "\n")
}
