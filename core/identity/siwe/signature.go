package siwe

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/signature"
)

// ErrSignature means that the message's address did not make the signature.
var ErrSignature = errors.New("the signature is not by the address in the message")

// maxSignature is the most bytes of a signature: those of smart accounts have no length of their own.
const maxSignature = 8 << 10

// ParseSignature reads a signature: 0x and 1 to 8,192 bytes in hexadecimal. Anything else is ErrSignature.
func ParseSignature(text string) ([]byte, error) {
	raw, ok := signature.Parse(text, 1, maxSignature)
	if !ok {
		return nil, ErrSignature
	}
	return raw, nil
}

// Hash is the hash of the text that wallets sign (EIP-191).
func (m *Message) Hash() common.Hash {
	return crypto.Keccak256Hash(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(m.text), m.text))
}

// SignedByKey reports whether the key of the message's address signed its text with personal_sign.
func (m *Message) SignedByKey(raw []byte) bool {
	return signature.ByKey(common.HexToAddress(m.Address), m.Hash(), raw)
}
