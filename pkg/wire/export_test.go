package wire

// DecodeExactly is DecodeTransferRequest without the scanner.
var DecodeExactly = decodeTransferRequest

// Scans reports whether the scanner takes a body.
func Scans(body []byte) bool {
	_, ok := scanTransferRequest(string(body))
	return ok
}
