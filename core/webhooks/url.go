package webhooks

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/pkg/loopback"
	"intents.internal/pkg/network"
)

// maxURLBytes bounds the length of a URL.
const maxURLBytes = 2048

// CheckURL validates a URL: at most 2,048 bytes, https, or also http for test, without user, password and fragment. It returns an
// *account.InvalidError, or ErrURLNotAllowed for a host that is known without DNS as one that must not be called.
func (r *Rules) CheckURL(text string, environment network.Environment) error {
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
	if err := checkHost(r.Networks, strings.ToLower(u.Hostname()), port); err != nil {
		return fmt.Errorf("%w: %w", ErrURLNotAllowed, err)
	}
	return nil
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
func checkHost(networks *outbound.Networks, host string, port uint16) error {
	if address, err := netip.ParseAddr(host); err == nil {
		return networks.Check(netip.AddrPortFrom(address.WithZone(""), port))
	}
	name := strings.TrimSuffix(host, ".")
	switch {
	case loopback.IsName(name):
		return networks.Check(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	case endsInNumber(name):
		return fmt.Errorf("%s is an IPv4 address in another form than four decimal numbers", host)
	case port != 80 && port != 443 && networks.OnlyPublic():
		return fmt.Errorf("the port must be 80 or 443, not %d", port)
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
