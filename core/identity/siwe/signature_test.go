package siwe_test

import (
	"crypto/ecdsa"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/identity/siwe"
)

// alice is the key of the messages' address, the first account of a well-known development mnemonic, and viemSigned what
// viem's signMessage makes of full with it.
const (
	alice      = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
	viemSigned = "0x89238428da69ddbe4aa8d72fd070fc614317ff98603414020981fe39ae5244c154909f12778e047698b1d6ef7d09618fe5c6d2274cdfb8ce2c2699f11e14c56f1b"
)

func personalSign(t *testing.T, key *ecdsa.PrivateKey, text string) []byte {
	t.Helper()
	signature, err := crypto.Sign(crypto.Keccak256(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(text), text)), key)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func TestSignedByKey(t *testing.T) {
	t.Parallel()
	key, err := crypto.HexToECDSA(alice)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	m, err := siwe.Parse(full)
	if err != nil {
		t.Fatal(err)
	}
	good := personalSign(t, key, full)
	v := good[64]
	text := func(raw []byte, v byte) string { return "0x" + hex.EncodeToString(append(raw[:64:64], v)) }

	order := crypto.S256().Params().N
	s := new(big.Int).Sub(order, new(big.Int).SetBytes(good[32:64]))
	twin := append(append([]byte{}, good[:32]...), s.FillBytes(make([]byte, 32))...)
	unprefixed, err := crypto.Sign(crypto.Keccak256([]byte(full)), key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		signature string
		good      bool
	}{
		"by viem":                 {viemSigned, true},
		"v as go-ethereum has it": {text(good, v), true},
		"v as wallets have it":    {text(good, v+27), true},
		"upper case":              {"0x" + strings.ToUpper(text(good, v+27)[2:]), true},
		"another v":               {text(good, 1-v), false},
		"another v of wallets":    {text(good, 28-v), false},
		"v of EIP-155":            {text(good, v+37), false},
		"v 2":                     {text(good, 2), false},
		"v 255":                   {text(good, 255), false},
		"the twin, its s in the order's upper half": {text(twin, 1-v), false},
		"the twin as wallets have it":               {text(twin, 28-v), false},
		"no prefix":                                 {text(good, v)[2:], false},
		"0X":                                        {"0X" + text(good, v)[2:], false},
		"64 bytes (EIP-2098)":                       {text(good, v)[:130], false},
		"66 bytes":                                  {text(good, v) + "00", false},
		"of a contract wallet (ERC-6492)":           {"0x" + strings.Repeat("00", 256) + strings.Repeat("6492", 16), false},
		"empty":                                     {"", false},
		"0x":                                        {"0x", false},
		"no hexadecimal":                            {"0x" + strings.Repeat("zz", 65), false},
		"all zero":                                  {"0x" + strings.Repeat("00", 65), false},
		"of another account":                        {text(personalSign(t, stranger, full), 27), false},
		"of another text":                           {text(personalSign(t, key, full+" "), personalSign(t, key, full+" ")[64]), false},
		"without the prefix of EIP-191":             {text(unprefixed, unprefixed[64]), false},
	} {
		raw, err := siwe.ParseSignature(c.signature)
		if err != nil && !errors.Is(err, siwe.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
		if good := err == nil && m.SignedByKey(raw); good != c.good {
			t.Errorf("%s: good = %t, want %t", name, good, c.good)
		}
	}
}

func TestParseSignature(t *testing.T) {
	t.Parallel()
	for text, length := range map[string]int{
		"0x00": 1, "0xAbCd": 2, "0x" + strings.Repeat("00", 8192): 8192,
		"": 0, "0x": 0, "00": 0, "0x0": 0, "0xzz": 0, "0X00": 0, " 0x00": 0, "0x" + strings.Repeat("00", 8193): 0,
	} {
		raw, err := siwe.ParseSignature(text)
		if len(raw) != length || (err == nil) != (length > 0) || err != nil && !errors.Is(err, siwe.ErrSignature) {
			t.Errorf("%.20q: %d bytes, %v", text, len(raw), err)
		}
	}
}
