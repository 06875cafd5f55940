package conn

import "net/netip"

// ClientPrefix returns the prefix that counts as one client: an IPv4 address, or the /64 of an IPv6 address, which usually
// belongs to one client (RFC 6177). An IPv4-mapped IPv6 address is the IPv4 address.
func ClientPrefix(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		return netip.PrefixFrom(address, 64).Masked().Addr()
	}
	return address
}
