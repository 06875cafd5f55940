package siwe

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// ErrSignature means that the message's address did not make the signature.
var ErrSignature = errors.New("the signature is not by the address in the message")

// maxSignature is the most bytes of a signature: those of smart accounts have no length of their own.
const maxSignature = 8 << 10

// ParseSignature reads a signature: 0x and 1 to 8,192 bytes in hexadecimal. Anything else is ErrSignature.
func ParseSignature(text string) ([]byte, error) {
	digits, prefixed := strings.CutPrefix(text, "0x")
	raw, err := hex.DecodeString(digits)
	if err != nil || !prefixed || len(raw) == 0 || len(raw) > maxSignature {
		return nil, ErrSignature
	}
	return raw, nil
}

// Hash is the hash of the text that wallets sign (EIP-191).
func (m *Message) Hash() common.Hash {
	return crypto.Keccak256Hash(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(m.text), m.text))
}

// SignedByKey reports whether the key of the message's address signed its text with personal_sign. The signature
// is 65 bytes r, s, v, where s is in the lower half of the curve's order, so that there is one
// signature of a message and not two, and v is 0, 1, 27 or 28.
func (m *Message) SignedByKey(signature []byte) bool {
	if len(signature) != crypto.SignatureLength {
		return false
	}
	raw := bytes.Clone(signature)
	v := &raw[crypto.RecoveryIDOffset]
	if *v >= 27 {
		*v -= 27
	}
	r, s := new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:64])
	if !crypto.ValidateSignatureValues(*v, r, s, true) {
		return false
	}
	key, err := crypto.SigToPub(m.Hash().Bytes(), raw)
	return err == nil && crypto.PubkeyToAddress(*key) == common.HexToAddress(m.Address)
}
