// Package loopback says which hosts of URLs are this machine, where requests without TLS stay private.
package loopback

import (
	"net/netip"
	"strings"
)

// IsHost reports whether a host is localhost or a loopback address, in lower case and without a port.
func IsHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// IsName reports whether a host is localhost or a name below it, which browsers resolve to this machine (RFC 6761, section 6.3). Other
// resolvers may ask a name server for the names below it.
func IsName(host string) bool { return host == "localhost" || strings.HasSuffix(host, ".localhost") }
