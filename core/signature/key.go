package signature

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// The lengths of the signature of an intent, in bytes.
const (
	// MinLength is that of a key's compact signature: r and yParityAndS (EIP-2098).
	MinLength = crypto.SignatureLength - 1
	// MaxLength bounds the signatures of contracts, which have no length of their own.
	MaxLength = 4 << 10
)

// Parse reads a signature: 0x and least to most bytes in hexadecimal digits. ok is false for anything else.
func Parse(text string, least, most int) (raw []byte, ok bool) {
	digits, prefixed := strings.CutPrefix(text, "0x")
	raw, err := hex.DecodeString(digits)
	if !prefixed || err != nil || len(raw) < least || len(raw) > most {
		return nil, false
	}
	return raw, true
}

// ByKey reports whether the key of an address has signed a hash. The signature is 65 bytes r, s, v, where s is in the lower half of the curve's
// order, so that there is one signature and not two, and v is 0, 1, 27 or 28.
func ByKey(address common.Address, hash common.Hash, signature []byte) bool {
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
	key, err := crypto.SigToPub(hash.Bytes(), raw)
	return err == nil && crypto.PubkeyToAddress(*key) == address
}

// Normalize returns a signature by a key in the one form that every contract takes: 65 bytes, s in the lower half, v 27 or 28. It takes the
// compact form of EIP-2098, the s of the other half and a v of 0 or 1. Anything else is returned as it is.
func Normalize(signature []byte) []byte {
	normal := bytes.Clone(signature)
	if len(normal) == MinLength {
		v := 27 + normal[32]>>7
		normal[32] &= 0x7f
		normal = append(normal, v)
	}
	if len(normal) != crypto.SignatureLength {
		return normal
	}
	v := &normal[crypto.RecoveryIDOffset]
	if *v < 2 {
		*v += 27
	}
	order := crypto.S256().Params().N
	s := new(big.Int).SetBytes(normal[32:64])
	if half := new(big.Int).Rsh(order, 1); s.Cmp(half) > 0 && s.Cmp(order) < 0 && (*v == 27 || *v == 28) {
		s.Sub(order, s).FillBytes(normal[32:64])
		*v = 27 + 28 - *v
	}
	return normal
}
