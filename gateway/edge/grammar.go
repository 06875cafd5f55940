package edge

import (
	"bytes"
	"net/netip"
)

// Character classes of RFC 9110, 9112 and 3986.

const (
	tokenByte = 1 << iota
	pathByte
	hostByte
	requestIDByte
)

var classes = func() (table [256]uint8) {
	mark := func(class uint8, characters string) {
		for _, c := range []byte(characters) {
			table[c] |= class
		}
	}
	const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	mark(tokenByte, alphanumeric+"!#$%&'*+-.^_`|~")
	mark(pathByte, alphanumeric+"-._~!$&'()*+,=:@/") // without % and ;
	mark(hostByte, alphanumeric+"-._")
	mark(requestIDByte, alphanumeric+"._-")
	return table
}()

func isPathByte(c byte) bool { return classes[c]&pathByte != 0 }

func isToken(b []byte) bool { return len(b) > 0 && all(b, tokenByte) }

// isHost accepts a name, an IPv4 address or an IPv6 address in brackets, with a port or without.
func isHost(b []byte) bool {
	if len(b) > 0 && b[0] == '[' {
		address, rest, closed := bytes.Cut(b[1:], []byte("]"))
		parsed, err := netip.ParseAddr(string(address))
		return closed && err == nil && parsed.Is6() && parsed.Zone() == "" && (len(rest) == 0 || rest[0] == ':' && isPort(rest[1:]))
	}
	name, port, hasPort := bytes.Cut(b, []byte(":"))
	return len(name) > 0 && all(name, hostByte) && (!hasPort || isPort(port))
}

func isPort(b []byte) bool {
	port, ok := number(b)
	return ok && port >= 1 && port <= 65535
}

func all(b []byte, class uint8) bool {
	for _, c := range b {
		if classes[c]&class == 0 {
			return false
		}
	}
	return true
}

// isFieldValue accepts tabs and all printable characters, bytes above ASCII included.
func isFieldValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// trimSpace removes the spaces and tabs that may surround a field value.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// number parses up to 18 decimal digits, which fit an int64, and nothing else.
func number(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}
