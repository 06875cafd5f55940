package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrAddressNotAllowed means that an address must not be called.
var ErrAddressNotAllowed = errors.New("the address is in a network that must not be called")

// azureWireServer is a public address that reaches the host's agent on Azure. It is in no registry of special-purpose addresses.
var azureWireServer = netip.MustParsePrefix("168.63.129.16/32")

// Networks are the addresses that may be dialled: public ones at ports 80 and 443, and those that the operator also allows, at any
// port.
type Networks struct {
	allowed []netip.Prefix
	public  *ssrf.Guardian // nil for no public address
}

// NewNetworks allows the prefixes besides public addresses.
func NewNetworks(allowed []netip.Prefix) *Networks {
	return &Networks{allowed: allowed, public: ssrf.New(ssrf.WithDeniedV4Prefixes(azureWireServer))}
}

// WithoutPublic are the addresses that the operator allows alone. It is nil for nil, which allows all.
func (n *Networks) WithoutPublic() *Networks {
	if n == nil {
		return nil
	}
	return &Networks{allowed: n.allowed}
}

// ParsePrefixes parses the comma-separated CIDRs of a setting.
func ParsePrefixes(text string) (prefixes []netip.Prefix, err error) {
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

// OnlyPublic reports whether no address is allowed besides public ones.
func (n *Networks) OnlyPublic() bool { return len(n.allowed) == 0 }

// Check returns ErrAddressNotAllowed for an address that must not be called. IPv4 addresses in IPv6 notation are never called.
func (n *Networks) Check(to netip.AddrPort) error {
	if slices.ContainsFunc(n.allowed, func(p netip.Prefix) bool { return p.Contains(to.Addr()) }) {
		return nil
	}
	if n.public == nil {
		return ErrAddressNotAllowed
	}
	if err := n.public.SafeAddrPort(to); err != nil {
		return fmt.Errorf("%w: %w", ErrAddressNotAllowed, err)
	}
	return nil
}

// control is a net.Dialer.Control: it checks each address after name resolution, so that a name cannot lead around the check (SSRF).
func (n *Networks) control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s %s", ErrAddressNotAllowed, network, address)
	}
	return n.Check(to)
}
