package transfer

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

// word is the length of an ABI word in bytes.
const word = 32

// selector returns the ABI selector of a function or an error: the first four bytes of the Keccak-256 of its signature.
func selector(signature string) [4]byte { return [4]byte(crypto.Keccak256([]byte(signature))) }

// putUint encodes a number as a uint256 into a zeroed word.
func putUint(w []byte, n uint64) { binary.BigEndian.PutUint64(w[word-8:], n) }

// putBig encodes a number as a uint256 into a zeroed word. It fails for a number out of range.
func putBig(w []byte, n *big.Int) error {
	if n.Sign() < 0 || n.BitLen() > 8*word {
		return fmt.Errorf("%s is no uint256", n)
	}
	n.FillBytes(w)
	return nil
}

// appendUint appends a number as a uint256.
func appendUint(b []byte, n uint64) []byte {
	var w [word]byte
	putUint(w[:], n)
	return append(b, w[:]...)
}

// appendBig appends a number as a uint256. It fails for a number out of range.
func appendBig(b []byte, n *big.Int) ([]byte, error) {
	var w [word]byte
	if err := putBig(w[:], n); err != nil {
		return nil, err
	}
	return append(b, w[:]...), nil
}

// tokenAddress returns the address of a token in an order. It is empty for the native asset, which orders encode as
// address(0).
func tokenAddress(id caip.AccountID) string {
	if registry.Native(id) {
		return ""
	}
	return id.Address
}

// putAddress encodes an EVM address into a zeroed word, left-padded, as ABI type address or bytes32. An empty address leaves the
// word zero.
func putAddress(w []byte, address string) error {
	const bytes = 20
	if address == "" {
		return nil
	}
	if len(address) != len("0x")+2*bytes {
		return fmt.Errorf("%q is no address", address)
	}
	if _, err := hex.Decode(w[word-bytes:word], []byte(address[len("0x"):])); err != nil {
		return fmt.Errorf("%q is no address: %w", address, err)
	}
	return nil
}

// appendAddresses appends the words of addresses.
func appendAddresses(b []byte, addresses ...string) ([]byte, error) {
	for _, address := range addresses {
		var w [word]byte
		if err := putAddress(w[:], address); err != nil {
			return nil, err
		}
		b = append(b, w[:]...)
	}
	return b, nil
}
