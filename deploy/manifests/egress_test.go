package manifests_test

import (
	"net/netip"
	"slices"
	"testing"

	"code.dny.dev/ssrf"
	networking "k8s.io/api/networking/v1"
)

// TestCoreEgress holds the second wall around webhooks and providers of quotes to the first one, core's dialer: on their ports a core
// reaches public addresses and what values name, and nothing that the dialer's list denies.
func TestCoreEgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values         string
		reached, other []string
	}{
		"as it is": {
			releases["as it is"],
			[]string{"1.1.1.1:80", "1.1.1.1:443", "[2606:4700::1111]:443", "172.32.0.1:443", "10.1.2.3:5432"},
			[]string{"1.1.1.1:8443", "10.20.1.2:443", "[fd00:20::1]:443", "10.1.2.3:4318", "10.1.2.3:6433"},
		},
		"all on": {
			releases["all on"],
			[]string{"1.1.1.1:80", "10.20.1.2:443", "10.20.1.2:8443", "[fd00:20::1]:9000", "10.30.1.2:8443", "[fd00:30::1]:9000", "10.1.2.3:6432", "10.1.2.3:6433", "10.1.2.3:5432"},
			[]string{"10.21.0.1:443", "44.128.0.1:443", "[2a00:1234::1]:443", "[fd00:21::1]:443", "10.2.2.3:6432"},
		},
		"without webhooks": {releases["without the job"], nil, []string{"1.1.1.1:80", "1.1.1.1:443", "[2606:4700::1111]:443"}},
		"quotes without webhooks": {`
secret: {name: intents, keys: {webhookSecretKey: "", quotesFile: quotes.json}}
core: {settings: {CORE_WEBHOOK_ALLOW: 10.20.0.0/16, CORE_QUOTES_ALLOW: 10.30.0.0/16}}
`, []string{"1.1.1.1:80", "1.1.1.1:443", "10.30.1.2:8443"}, []string{"1.1.1.1:8443", "10.20.1.2:443", "10.31.0.1:443"}},
		"webhooks without quotes": {`
secret: {name: intents}
core: {settings: {CORE_WEBHOOK_ALLOW: 10.20.0.0/16, CORE_QUOTES_ALLOW: 10.30.0.0/16}}
`, []string{"1.1.1.1:443", "10.20.1.2:8443"}, []string{"10.30.1.2:443", "10.30.1.2:8443"}},
		"a node of one's own": {`
secret: {name: intents, keys: {rpcFile: rpc.json}}
networkPolicy: {rpc: {port: 8545, peers: [{ipBlock: {cidr: 10.3.0.0/24}}]}}
`, []string{"10.3.0.1:8545", "1.1.1.1:443"}, []string{"10.3.0.1:443", "10.4.0.1:8545", "1.1.1.1:8545"}},
	} {
		policy := of[*networking.NetworkPolicy](objects(t, c.values))["trial-core"]
		for _, address := range c.reached {
			if !reaches(t, policy, netip.MustParseAddrPort(address)) {
				t.Errorf("%s: cores do not reach %s", name, address)
			}
		}
		for _, address := range c.other {
			if reaches(t, policy, netip.MustParseAddrPort(address)) {
				t.Errorf("%s: cores reach %s", name, address)
			}
		}
		for _, address := range denied() {
			for _, port := range []uint16{80, 443} {
				if to := netip.AddrPortFrom(address, port); reaches(t, policy, to) {
					t.Errorf("%s: cores reach %s", name, to)
				}
			}
		}
	}
}

// denied are the first and last address of every prefix that the dialer refuses, and some outside of IPv6's public space.
func denied() (addresses []netip.Addr) {
	for _, prefix := range slices.Concat(ssrf.IPv4DeniedPrefixes, ssrf.IPv6DeniedPrefixes) {
		addresses = append(addresses, prefix.Addr(), last(prefix))
	}
	for _, address := range []string{"::", "::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "1fff::1", "4000::1", "fc00::1", "fe80::1", "ff02::1", "169.254.169.254", "168.63.129.16"} {
		addresses = append(addresses, netip.MustParseAddr(address))
	}
	return addresses
}

// last is the last address of a prefix.
func last(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

// reaches reports whether the policy lets out to an address that is no pod of a selector.
func reaches(t *testing.T, policy *networking.NetworkPolicy, to netip.AddrPort) bool {
	t.Helper()
	return slices.ContainsFunc(policy.Spec.Egress, func(rule networking.NetworkPolicyEgressRule) bool {
		port := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networking.NetworkPolicyPort) bool {
			return p.Port.IntValue() == int(to.Port())
		})
		return port && (len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(peer networking.NetworkPolicyPeer) bool {
			return peer.IPBlock != nil && contains(t, peer.IPBlock, to.Addr())
		}))
	})
}

// contains reports whether a block has an address. The API server refuses exceptions that are not within the block.
func contains(t *testing.T, block *networking.IPBlock, address netip.Addr) bool {
	t.Helper()
	all := netip.MustParsePrefix(block.CIDR)
	excepted := false
	for _, text := range block.Except {
		except := netip.MustParsePrefix(text)
		if !all.Overlaps(except) || except.Bits() <= all.Bits() || except != except.Masked() {
			t.Errorf("%s is no exception of %s", except, all)
		}
		excepted = excepted || except.Contains(address)
	}
	return all.Contains(address) && !excepted
}
