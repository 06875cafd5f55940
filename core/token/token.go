// Package token defines the canonical tokens of the registry and reads them from published token lists.
package token

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"intents.internal/pkg/caip"
)

// NativeAddress stands for a chain's native asset where a token contract is asked for (ERC-7528).
const NativeAddress = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"

// Definition is one canonical token. A token is known by its chain and address; symbols repeat.
type Definition struct {
	// ID is the CAIP-10 account id of the token contract, its address in EIP-55 spelling.
	ID       caip.AccountID
	Symbol   string
	Decimals uint8
	// Metadata is a URI or a serialized payload, empty for none. Token lists fill it with the logo's URI.
	Metadata string
}

// Native tells whether the id stands for the native asset of its chain.
func Native(id caip.AccountID) bool { return id.Address == NativeAddress }

const (
	maxSymbolLength   = 32
	maxMetadataLength = 2048
)

func (d Definition) validate() error {
	switch {
	case !printable(d.Symbol) || utf8.RuneCountInString(d.Symbol) > maxSymbolLength:
		return fmt.Errorf("symbol must have 1 to %d printable characters", maxSymbolLength)
	case len(d.Metadata) > maxMetadataLength || strings.IndexByte(d.Metadata, 0) >= 0:
		return fmt.Errorf("logoURI must have at most %d bytes", maxMetadataLength)
	case strings.Trim(d.ID.Address, "0x") == "":
		return errors.New("the zero address is no token; native assets have the ERC-7528 address")
	}
	return nil
}

func printable(s string) bool {
	if s == "" || !utf8.ValidString(s) || strings.TrimSpace(s) != s {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return false
		}
	}
	return true
}
