package registry

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"intents.internal/pkg/caip"
)

// NativeAddress represents a chain's native asset in place of a token contract (ERC-7528).
const NativeAddress = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"

// Token is one canonical token. A token is identified by its chain and address; symbols are not unique.
type Token struct {
	// ID is the CAIP-10 account id of the token contract, its address in EIP-55 spelling.
	ID       caip.AccountID
	Symbol   string
	Decimals uint8
	// Metadata is a URI or a serialized payload, empty for none. Token lists fill it with the logo's URI.
	Metadata string
	Origin
}

// Origin is the source and licence of a definition, empty if not recorded.
type Origin struct {
	Source string
	// License is an SPDX license expression (https://spdx.org/licenses), such as MIT or GPL-3.0-or-later.
	License string
}

// Native reports whether the id represents the native asset of its chain.
func Native(id caip.AccountID) bool { return id.Address == NativeAddress }

const (
	maxSymbolLength   = 32
	maxMetadataLength = 2048
	maxSourceLength   = 256
	maxLicenseLength  = 64
)

var errLicense = fmt.Errorf("license must be an SPDX license expression of at most %d characters, such as MIT", maxLicenseLength)

// licenseExpression matches the characters of SPDX license expressions; the identifiers are not checked.
var licenseExpression = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+() :-]*$`)

// Validate returns an error for the first rule that the origin breaks.
func (o Origin) Validate() error {
	switch {
	case o.Source != "" && (!printable(o.Source) || utf8.RuneCountInString(o.Source) > maxSourceLength):
		return fmt.Errorf("source must have at most %d printable characters", maxSourceLength)
	case o.License != "" && (len(o.License) > maxLicenseLength || !licenseExpression.MatchString(o.License)):
		return errLicense
	}
	return nil
}

func (d Token) validate() error {
	switch {
	case !printable(d.Symbol) || utf8.RuneCountInString(d.Symbol) > maxSymbolLength:
		return fmt.Errorf("symbol must have 1 to %d printable characters", maxSymbolLength)
	case len(d.Metadata) > maxMetadataLength || strings.IndexByte(d.Metadata, 0) >= 0:
		return fmt.Errorf("logoURI must have at most %d bytes", maxMetadataLength)
	case strings.Trim(d.ID.Address, "0x") == "":
		return errors.New("the zero address is no token; native assets have the ERC-7528 address " + NativeAddress)
	}
	return Origin{Source: d.Source, License: d.License}.Validate()
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
