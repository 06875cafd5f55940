package provider

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

// assetAddress returns the address of a token as providers name it: the zero address for the native asset.
func assetAddress(id caip.AccountID) string {
	if registry.Native(id) {
		return caip.ZeroAddress
	}
	return id.Address
}

// The parts of an interoperable address of an EVM chain (EIP-7930): version 1, chain type eip155, the length of the chain reference, which is
// the chain number without leading zeros, then the length of the address and the address.
const (
	interoperablePrefix  = "00010000"
	interoperableAddress = 20
)

// interoperable encodes an address on an eip155 chain by EIP-7930.
func interoperable(chain caip.ChainID, address string) (string, error) {
	number, ok := chain.Number()
	digits, isHex := strings.CutPrefix(address, "0x")
	raw, err := hex.DecodeString(digits)
	if !ok || !isHex || err != nil || len(raw) != interoperableAddress {
		return "", fmt.Errorf("%s:%s has no interoperable address", chain, address)
	}
	reference := new(big.Int).SetUint64(number).Bytes()
	return fmt.Sprintf("0x%s%02x%x%02x%x", interoperablePrefix, len(reference), reference, len(raw), raw), nil
}

var errInteroperable = errors.New("is no interoperable address (EIP-7930) of an EVM chain")

// parseInteroperable decodes an interoperable address into a CAIP-2 chain id and an address.
func parseInteroperable(text string) (chain, address string, err error) {
	digits, isHex := strings.CutPrefix(text, "0x")
	raw, err := hex.DecodeString(digits)
	if !isHex || err != nil || len(raw) < 5 || hex.EncodeToString(raw[:4]) != interoperablePrefix {
		return "", "", errInteroperable
	}
	length := int(raw[4])
	rest := raw[5:]
	if length == 0 || length > 8 || len(rest) != length+1+interoperableAddress || rest[0] == 0 || rest[length] != interoperableAddress {
		return "", "", errInteroperable
	}
	number := new(big.Int).SetBytes(rest[:length])
	return "eip155:" + number.String(), "0x" + hex.EncodeToString(rest[length+1:]), nil
}
