package provider_test

import (
	"strings"
	"testing"

	"intents.internal/core/quotes/provider"
	"intents.internal/pkg/caip"
)

// The first is a vector of EIP-7930.
var interoperableVectors = []struct {
	chain uint64
	text  string
}{
	{1, "0x00010000010114d8da6bf26964af9d7eed9e03e53415d37aa96045"},
	{0x2105, "0x0001000002210514d8da6bf26964af9d7eed9e03e53415d37aa96045"},
	{0xaa36a7, "0x0001000003aa36a714d8da6bf26964af9d7eed9e03e53415d37aa96045"},
	{0x80000001, "0x00010000048000000114d8da6bf26964af9d7eed9e03e53415d37aa96045"},
	{0x0100000002, "0x0001000005010000000214d8da6bf26964af9d7eed9e03e53415d37aa96045"},
	{0x010000000003, "0x000100000601000000000314d8da6bf26964af9d7eed9e03e53415d37aa96045"},
	{0x01000000000004, "0x00010000070100000000000414d8da6bf26964af9d7eed9e03e53415d37aa96045"},
	{0xffffffffffffffff, "0x0001000008ffffffffffffffff14d8da6bf26964af9d7eed9e03e53415d37aa96045"},
}

func TestInteroperable(t *testing.T) {
	t.Parallel()
	for _, v := range interoperableVectors {
		id := caip.EIP155Chain(v.chain)
		if text, err := provider.Interoperable(id, sender); text != v.text || err != nil {
			t.Errorf("%s: %s, %v", id, text, err)
		}
		chain, address, err := provider.ParseInteroperable(v.text)
		if chain != id.String() || !strings.EqualFold(address, sender) || err != nil {
			t.Errorf("%s: %s %s, %v", v.text, chain, address, err)
		}
	}
	if text, err := provider.Interoperable(caip.ChainID{Namespace: "solana", Reference: "mainnet"}, sender); err == nil {
		t.Error("another namespace: ", text)
	}
}

func TestParseInteroperable_Malformed(t *testing.T) {
	t.Parallel()
	const address = "14d8da6bf26964af9d7eed9e03e53415d37aa96045"
	for name, text := range map[string]string{
		"empty": "", "no prefix": "000100000101" + address, "no digits": "0x", "plain address": sender, "odd": "0x000100000101" + address[1:],
		"version 2": "0x000200000101" + address, "solana": "0x000100020101" + address, "no chain": "0x0001000000" + address,
		"leading zero": "0x00010000020001" + address, "chain of 9 bytes": "0x0001000009010000000000000000" + address,
		"length over the end": "0x00010000ff01" + address, "address of 19 bytes": "0x00010000010113" + address[4:], "longer": "0x000100000101" + address + "00",
		"shorter": "0x000100000101" + address[:40], "only the header": "0x0001000001", "draft's order of lengths": "0x000100000314aa37dc" + address[2:],
	} {
		if chain, got, err := provider.ParseInteroperable(text); err == nil {
			t.Errorf("%s: %s %s", name, chain, got)
		}
	}
}

// What is decoded encodes to the same text.
func FuzzParseInteroperable(f *testing.F) {
	for _, v := range interoperableVectors {
		f.Add(v.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		chain, address, err := provider.ParseInteroperable(text)
		if err != nil {
			return
		}
		_, reference, _ := strings.Cut(chain, ":")
		again, err := provider.Interoperable(caip.ChainID{Namespace: caip.EIP155, Reference: reference}, address)
		if err != nil || !strings.EqualFold(again, text) {
			t.Errorf("%s is decoded to %s %s, which is %s: %v", text, chain, address, again, err)
		}
	})
}
