package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

// maxURLBytes bounds the length of a URL.
const maxURLBytes = 2048

// azureWireServer is a public address that reaches the host's agent on Azure. It is in no registry of special-purpose addresses.
var azureWireServer = netip.MustParsePrefix("168.63.129.16/32")

// Network determines which addresses may be called: public ones at ports 80 and 443, and those that the operator also allows, at
// any port.
type Network struct {
	allowed []netip.Prefix
	public  *ssrf.Guardian
}

// NewNetwork takes the prefixes of CORE_WEBHOOK_ALLOW.
func NewNetwork(allowed []netip.Prefix) *Network {
	return &Network{allowed: allowed, public: ssrf.New(ssrf.WithDeniedV4Prefixes(azureWireServer))}
}

// ParseAllow parses the comma-separated CIDRs of CORE_WEBHOOK_ALLOW.
func ParseAllow(text string) (prefixes []netip.Prefix, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil || prefix.Addr().Is4In6() || prefix != prefix.Masked() {
			return nil, fmt.Errorf("must be CIDRs such as 10.20.0.0/16 with no bit set after the prefix, comma separated, not %q", part)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// Control is a net.Dialer.Control: it rejects connections to addresses that must not be called, after name resolution (SSRF).
func (n *Network) Control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s %s", ErrURLNotAllowed, network, address)
	}
	return n.Check(to)
}

// Check returns ErrURLNotAllowed for an address that must not be called. IPv4 addresses in IPv6 notation are never called.
func (n *Network) Check(to netip.AddrPort) error {
	if n.allows(to.Addr()) {
		return nil
	}
	if err := n.public.SafeAddrPort(to); err != nil {
		return fmt.Errorf("%w: %w", ErrURLNotAllowed, err)
	}
	return nil
}

// allows reports whether the operator explicitly allows the address.
func (n *Network) allows(address netip.Addr) bool {
	return slices.ContainsFunc(n.allowed, func(p netip.Prefix) bool { return p.Contains(address) })
}

// CheckURL validates a URL: at most 2,048 bytes, https, or also http for test, without user, password and fragment. It returns an
// *account.InvalidError, or ErrURLNotAllowed for a host that is known without DNS as one that must not be called.
func (n *Network) CheckURL(text string, environment network.Environment) error {
	invalid := func(message string) error { return &account.InvalidError{Field: "url", Message: message} }
	if len(text) > maxURLBytes {
		return invalid(fmt.Sprintf("must have at most %d characters", maxURLBytes))
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || strings.ContainsFunc(text, notVisibleASCII) {
		return invalid("must be an absolute URL of visible ASCII characters; write other names as xn--… and other characters percent-encoded")
	}
	switch {
	case u.User != nil || strings.Contains(u.Host, "@"):
		return invalid("must not have a user name or password")
	case strings.Contains(text, "#"):
		return invalid("must not have a fragment")
	case u.Scheme != "https" && u.Scheme != "http":
		return invalid("must begin with https://, or with http:// for the test environment")
	case u.Scheme != "https" && environment != network.Test:
		return invalid("must begin with https:// in the live environment")
	}
	port, ok := portOf(u)
	if !ok {
		return invalid("must have a port from 1 to 65535, or none")
	}
	return n.checkHost(strings.ToLower(u.Hostname()), port)
}

func notVisibleASCII(r rune) bool { return r <= ' ' || r > '~' }

// portOf returns the URL's port, or its scheme's default.
func portOf(u *url.URL) (uint16, bool) {
	if u.Port() == "" {
		return map[string]uint16{"http": 80, "https": 443}[u.Scheme], !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return uint16(port), err == nil && port > 0
}

// checkHost rejects hosts that are invalid regardless of DNS. If the operator allows networks, a name may resolve into one, so
// only the dialer can check its port.
func (n *Network) checkHost(host string, port uint16) error {
	if address, err := netip.ParseAddr(host); err == nil {
		return n.Check(netip.AddrPortFrom(address.WithZone(""), port))
	}
	name := strings.TrimSuffix(host, ".")
	switch {
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return n.Check(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	case endsInNumber(name):
		return fmt.Errorf("%w: %s is an IPv4 address in another form than four decimal numbers", ErrURLNotAllowed, host)
	case port != 80 && port != 443 && len(n.allowed) == 0:
		return fmt.Errorf("%w: the port must be 80 or 443, not %d", ErrURLNotAllowed, port)
	}
	return nil
}

// endsInNumber reports whether resolvers may parse the host as an IPv4 address in octal, hexadecimal or short form (WHATWG URL,
// "ends in a number checker").
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, isHex := strings.CutPrefix(last, "0x"); isHex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
