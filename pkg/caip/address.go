package caip

import (
	"encoding/hex"
	"errors"
	"hash"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/sha3"
)

const addressLength = len("0x") + 40

// ZeroAddress is the EVM address that nobody has the key of.
const ZeroAddress = "0x0000000000000000000000000000000000000000"

var (
	errAddress  = errors.New("must be an EVM address: 0x and 40 hexadecimal digits")
	errChecksum = errors.New("the address has a wrong EIP-55 checksum; copy it again or write it all in lower case")
)

// ParseAddress parses a 20-byte EVM address and returns its EIP-55 form. A lower-case address has no checksum and is accepted.
// Any other form, upper case included, must match its EIP-55 form.
func ParseAddress(s string) (string, error) {
	if len(s) != addressLength || s[0] != '0' || s[1] != 'x' {
		return "", errAddress
	}
	var lower [addressLength]byte
	mixed := false
	for i := range lower {
		c := s[i]
		switch {
		case i < 2, isDigit(c), 'a' <= c && c <= 'f':
		case 'A' <= c && c <= 'F':
			mixed = true
			c += 'a' - 'A'
		default:
			return "", errAddress
		}
		lower[i] = c
	}
	sum := checksum(lower)
	if mixed && sum != s {
		return "", errChecksum
	}
	return sum, nil
}

// hasher is a Keccak-256 with its input and output buffers, so that they are not allocated for each address.
type hasher struct {
	hash.Hash
	address [addressLength]byte
	sum     [32]byte
}

var hashers = sync.Pool{New: func() any { return &hasher{Hash: sha3.NewLegacyKeccak256()} }}

// checksums caches the EIP-55 forms of addresses, by their last three digits: most requests name the same tokens and accounts,
// and the hash costs more than the rest of parsing a request. On a collision the new address replaces the old one.
var checksums [1 << 12]atomic.Pointer[spelling]

// spelling is an address in lower case and in its EIP-55 form.
type spelling struct {
	lower [addressLength]byte
	sum   string
}

// checksum returns the EIP-55 form of a lower-case address.
func checksum(address [addressLength]byte) string {
	place := 0
	for _, digit := range address[addressLength-3:] {
		place = place<<4 | nibble(digit)
	}
	if known := checksums[place].Load(); known != nil && known.lower == address {
		return known.sum
	}
	sum := computeChecksum(address)
	checksums[place].Store(&spelling{address, sum})
	return sum
}

// nibble returns the value of a lower-case hexadecimal digit.
func nibble(digit byte) int {
	if isDigit(digit) {
		return int(digit - '0')
	}
	return int(digit-'a') + 10
}

// computeChecksum upper-cases each letter of a lower-case address whose nibble in the address's Keccak-256 is 8 or more (EIP-55).
func computeChecksum(address [addressLength]byte) string {
	k := hashers.Get().(*hasher)
	k.Reset()
	k.address = address
	k.Write(k.address[2:])
	var digits [64]byte
	hex.Encode(digits[:], k.Sum(k.sum[:0]))
	hashers.Put(k)
	for i := 2; i < addressLength; i++ {
		if isLower(address[i]) && digits[i-2] >= '8' {
			address[i] -= 'a' - 'A'
		}
	}
	return string(address[:])
}
