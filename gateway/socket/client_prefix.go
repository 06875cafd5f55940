package socket

import "net/netip"

// ClientPrefix is what counts as one client where clients are bounded by address: an IPv4 address, or the /64 that one IPv6
// client commonly has to itself (RFC 6177). An IPv4 address within IPv6 is that IPv4 address.
func ClientPrefix(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		return netip.PrefixFrom(address, 64).Masked().Addr()
	}
	return address
}
