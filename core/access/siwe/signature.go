package siwe

import (
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

// Verify reports whether the account at the message's address signed its text with personal_sign (EIP-191). The signature
// is 0x and 65 bytes r, s, v in hexadecimal, where s is in the lower half of the curve's order, so that there is one
// signature of a message and not two, and v is 0, 1, 27 or 28. Anything else is ErrSignature.
func (m *Message) Verify(signature string) error {
	digits, prefixed := strings.CutPrefix(signature, "0x")
	raw, err := hex.DecodeString(digits)
	if err != nil || !prefixed || len(raw) != crypto.SignatureLength {
		return ErrSignature
	}
	v := &raw[crypto.RecoveryIDOffset]
	if *v >= 27 {
		*v -= 27
	}
	r, s := new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:64])
	if !crypto.ValidateSignatureValues(*v, r, s, true) {
		return ErrSignature
	}
	signed := fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(m.text), m.text)
	key, err := crypto.SigToPub(crypto.Keccak256(signed), raw)
	if err != nil || crypto.PubkeyToAddress(*key) != common.HexToAddress(m.Address) {
		return ErrSignature
	}
	return nil
}
