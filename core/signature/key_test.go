package signature_test

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/signature"
)

// keySigned is a signature of a hash by a key, with v 27 or 28.
func keySigned(t *testing.T, hash common.Hash) (address common.Address, signed []byte) {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	if signed, err = crypto.Sign(hash[:], key); err != nil {
		t.Fatal(err)
	}
	signed[64] += 27
	return crypto.PubkeyToAddress(key.PublicKey), signed
}

// highS is the other signature of the same hash by the same key.
func highS(signed []byte) []byte {
	other := bytes.Clone(signed)
	new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(signed[32:64])).FillBytes(other[32:64])
	other[64] ^= 27 ^ 28
	return other
}

func compact(signed []byte) []byte {
	short := bytes.Clone(signed[:64])
	short[32] |= (signed[64] - 27) << 7
	return short
}

func with(signed []byte, at int, value byte) []byte {
	other := bytes.Clone(signed)
	other[at] = value
	return other
}

// Every form of a signature by a key has one normal form; both parities of v occur.
func TestNormalize(t *testing.T) {
	t.Parallel()
	parities := map[byte]bool{}
	for n := range 64 {
		hash := common.BigToHash(big.NewInt(int64(n)))
		address, signed := keySigned(t, hash)
		parities[signed[64]] = true
		for name, form := range map[string][]byte{
			"65 bytes": signed, "v of 0 or 1": with(signed, 64, signed[64]-27), "high s": highS(signed),
			"high s, v of 0 or 1": with(highS(signed), 64, highS(signed)[64]-27), "64 bytes (EIP-2098)": compact(signed),
		} {
			if got := signature.Normalize(form); !bytes.Equal(got, signed) || !signature.ByKey(address, hash, got) {
				t.Errorf("%s: %x, want %x", name, got, signed)
			}
		}
		for name, form := range map[string][]byte{
			"v of 29": with(signed, 64, 29), "63 bytes": signed[:63], "66 bytes": append(bytes.Clone(signed), 0), "empty": {},
			"r of zero": append(make([]byte, 32), signed[32:]...), "s of the order": append(append(bytes.Clone(signed[:32]), crypto.S256().Params().N.Bytes()...), 27),
		} {
			if got := signature.Normalize(form); !cmp.Equal(got, form) || signature.ByKey(address, hash, got) {
				t.Errorf("%s: %x is signed", name, got)
			}
		}
		if signature.ByKey(common.Address{1}, hash, signed) || signature.ByKey(address, common.Hash{1}, signed) || signature.ByKey(address, hash, highS(signed)) {
			t.Error("another address, hash or a high s is signed")
		}
	}
	if len(parities) != 2 {
		t.Errorf("64 signatures have the parities %v", parities)
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Add(make([]byte, 65))
	f.Fuzz(func(t *testing.T, given []byte) {
		once := signature.Normalize(given)
		if twice := signature.Normalize(once); !bytes.Equal(once, twice) {
			t.Errorf("%x is normalized to %x and then %x", given, once, twice)
		}
	})
}
