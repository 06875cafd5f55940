package edge

// The character classes of RFC 9110, 9112 and 3986 that the framing guard goes by.

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
	mark(hostByte, alphanumeric+"-._:[]")
	mark(requestIDByte, alphanumeric+"._-")
	return table
}()

func isPathByte(c byte) bool { return classes[c]&pathByte != 0 }

func isToken(b []byte) bool { return len(b) > 0 && all(b, tokenByte) }

func isHost(b []byte) bool { return len(b) > 0 && all(b, hostByte) }

func all(b []byte, class uint8) bool {
	for _, c := range b {
		if classes[c]&class == 0 {
			return false
		}
	}
	return true
}

// isFieldValue allows tabs and everything printable, bytes above ASCII included.
func isFieldValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isNumber allows up to 18 decimal digits, so that the number fits an int64.
func isNumber(b []byte) bool {
	if len(b) == 0 || len(b) > 18 {
		return false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
