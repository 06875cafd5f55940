// Package forwarded reads the addresses of X-Forwarded-For.
//
// It owns their spellings. Which proxies are trusted, and which address counts, is decided by who reads the field.
package forwarded

import (
	"net/netip"
	"strconv"
	"strings"
)

// ParseAddr parses one address of the field: an IPv4 or IPv6 address, alone or with a port, as 203.0.113.7, 203.0.113.7:5678, 2001:db8::1,
// [2001:db8::1] or [2001:db8::1]:5678 (Azure's gateways send ports, and others the brackets of RFC 7239). An IPv4-mapped address is
// returned as IPv4, and a zone is dropped. It does not allocate for an address that it can read.
func ParseAddr(text string) (address netip.Addr, ok bool) {
	host, port, hasPort := text, "", false
	if inside, bracketed := strings.CutPrefix(text, "["); bracketed {
		var closed bool
		if host, port, closed = strings.Cut(inside, "]"); !closed || strings.IndexByte(host, ':') < 0 {
			return netip.Addr{}, false
		}
		if port, hasPort = strings.CutPrefix(port, ":"); !hasPort && port != "" {
			return netip.Addr{}, false
		}
	} else if strings.Count(text, ":") == 1 { // one more would be IPv6
		host, port, hasPort = strings.Cut(text, ":")
	}
	if hasPort && !isPort(port) {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(host)
	return address.Unmap().WithZone(""), err == nil
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}
