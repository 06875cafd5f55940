package signature_test

import (
	"bytes"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/signature"
)

// wrapped is an ERC-6492 signature as viem's serializeErc6492Signature writes it: factory 0x11…11, factoryData 0x0102, signature 0xabcd.
var wrapped = common.FromHex("0x" +
	"0000000000000000000000001111111111111111111111111111111111111111" +
	"0000000000000000000000000000000000000000000000000000000000000060" +
	"00000000000000000000000000000000000000000000000000000000000000a0" +
	"0000000000000000000000000000000000000000000000000000000000000002" +
	"0102000000000000000000000000000000000000000000000000000000000000" +
	"0000000000000000000000000000000000000000000000000000000000000002" +
	"abcd000000000000000000000000000000000000000000000000000000000000" +
	"6492649264926492649264926492649264926492649264926492649264926492")

func TestParseSmartAccount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raw  []byte
		want signature.SmartAccount
	}{
		"ERC-1271": {[]byte{1, 2}, signature.SmartAccount{Signature: []byte{1, 2}}},
		"ERC-6492": {wrapped, signature.SmartAccount{
			Signature: []byte{0xab, 0xcd}, Factory: common.HexToAddress("0x1111111111111111111111111111111111111111"), FactoryData: []byte{1, 2},
		}},
		"a byte after the suffix": {append(bytes.Clone(wrapped), 0), signature.SmartAccount{Signature: append(bytes.Clone(wrapped), 0)}},
	} {
		got, err := signature.ParseSmartAccount(c.raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	huge := bytes.Clone(wrapped)
	for i := range 31 {
		huge[96+i] = 0xff // the length of the factory's data
	}
	for name, raw := range map[string][]byte{
		"the suffix alone": wrapped[len(wrapped)-32:], "cut short": wrapped[64:], "a length beyond the end": huge,
	} {
		if got, err := signature.ParseSmartAccount(raw); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzParseSmartAccount(f *testing.F) {
	f.Add(wrapped)
	f.Add(wrapped[len(wrapped)-32:])
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := signature.ParseSmartAccount(raw)
		if err == nil && len(got.Signature)+len(got.FactoryData) > len(raw) {
			t.Errorf("%d and %d bytes came of %d", len(got.Signature), len(got.FactoryData), len(raw))
		}
	})
}
