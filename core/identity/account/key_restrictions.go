package account

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"intents.internal/pkg/apikey"
)

// maxNetworks is the maximum number of networks of a key.
const maxNetworks = 32

// ParseScopes parses the names of a key's scopes, at least one.
func ParseScopes(names []string) (apikey.Scopes, error) {
	scopes, err := apikey.ParseScopes(names)
	if err != nil || scopes == 0 {
		return 0, &InvalidError{Field: "scopes", Message: "must be one or more of " + strings.Join(apikey.AllScopes.Names(), ", ")}
	}
	return scopes, nil
}

// ParseNetworks parses addresses and networks in CIDR notation (RFC 4632, RFC 4291 section 2.3), at most 32 different ones. It
// returns each once, sorted, with the bits after its prefix cleared. An address is a network of one address, and an IPv4-mapped
// IPv6 address (RFC 4291 section 2.5.5.2) is that IPv4 address. None means any network.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range texts {
		network, ok := parseNetwork(text)
		if !ok {
			return nil, &InvalidError{Field: "networks", Message: fmt.Sprintf(
				"must be addresses or networks such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32, not %.50q", text)}
		}
		networks = append(networks, network)
	}
	slices.SortFunc(networks, netip.Prefix.Compare)
	networks = slices.Compact(networks)
	if len(networks) > maxNetworks {
		return nil, &InvalidError{Field: "networks", Message: fmt.Sprintf("must be at most %d", maxNetworks)}
	}
	return networks, nil
}

func parseNetwork(text string) (netip.Prefix, bool) {
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" { // Unmap drops the zone
			return netip.Prefix{}, false
		}
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), true
	}
	network, err := netip.ParsePrefix(text) // rejects zones
	if err != nil {
		return netip.Prefix{}, false
	}
	if address, bits := network.Addr(), network.Bits(); address.Is4In6() {
		if bits < 96 { // the network would also contain addresses that are not IPv4
			return netip.Prefix{}, false
		}
		network = netip.PrefixFrom(address.Unmap(), bits-96)
	}
	return network.Masked(), true
}

// Restricted reports whether the key lacks a scope or has networks.
func (k *Key) Restricted() bool { return k.Scopes != apikey.AllScopes || len(k.Networks) > 0 }

// restrict applies a change of scopes or networks and returns its descriptions for the audit log.
func (k *Key) restrict(c KeyChange) (changes []string) {
	if c.Scopes != nil && *c.Scopes != k.Scopes {
		k.Scopes = *c.Scopes
		changes = append(changes, k.scopesText())
	}
	if c.Networks != nil && !slices.Equal(*c.Networks, k.Networks) {
		k.Networks = *c.Networks
		changes = append(changes, k.networksText())
	}
	return changes
}

func (k *Key) scopesText() string { return "scopes " + strings.Join(k.Scopes.Names(), " ") }

func (k *Key) networksText() string {
	if len(k.Networks) == 0 {
		return "any network"
	}
	return "networks " + strings.Trim(fmt.Sprint(k.Networks), "[]")
}
