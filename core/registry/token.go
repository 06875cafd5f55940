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
	// Name is what people call the token, of at most maxNameLength printable characters, empty where no list has said it. It is not the name of a
	// signing domain.
	Name string
	// Metadata is a URI or a serialized payload, empty for none. Token lists fill it with the logo's URI.
	Metadata string
	// ERC3009 is what authorizations of the token are signed with, nil where it has none or nobody has recorded them.
	ERC3009 *ERC3009
	// EIP2612 is the domain that permits of the token are signed in, nil where it has none or nobody has recorded it.
	EIP2612 *EIP712Domain
	// FeeOnTransfer means that the recipient of a transfer gets less than its sender pays.
	FeeOnTransfer bool
	Origin
}

// EIP712Domain has the members of a token's signing domain that its address and chain do not tell. They differ between the chains of one token.
type EIP712Domain struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ERC3009 is the domain of a token's authorizations (ERC-3009) and the form of the functions that take them.
type ERC3009 struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Form    AuthorizationForm `json:"form"`
}

// Domain is the domain that authorizations are signed in.
func (e ERC3009) Domain() EIP712Domain { return EIP712Domain{Name: e.Name, Version: e.Version} }

// AuthorizationForm is how the functions of an ERC-3009 token take a signature.
type AuthorizationForm string

// The two forms. BytesForm is the default, and the only one that input settlers call.
const (
	// BytesForm takes the signature as one argument of the type bytes, as Circle's FiatTokenV2_2 does.
	BytesForm AuthorizationForm = "bytes"
	// VRSForm takes v, r and s, as the ERC has it.
	VRSForm AuthorizationForm = "vrs"
)

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
	maxNameLength     = 128
	maxMetadataLength = 2048
	maxDomainLength   = 64
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
	case !isSymbol(d.Symbol):
		return fmt.Errorf("symbol must have 1 to %d printable characters", maxSymbolLength)
	case len(d.Metadata) > maxMetadataLength || strings.IndexByte(d.Metadata, 0) >= 0:
		return fmt.Errorf("logoURI must have at most %d bytes", maxMetadataLength)
	case strings.Trim(d.ID.Address, "0x") == "":
		return errors.New("the zero address is no token; native assets have the ERC-7528 address " + NativeAddress)
	}
	if err := d.validateSigning(); err != nil {
		return err
	}
	return Origin{Source: d.Source, License: d.License}.Validate()
}

func (d Token) validateSigning() error {
	if Native(d.ID) && (d.ERC3009 != nil || d.EIP2612 != nil || d.FeeOnTransfer) {
		return errors.New("erc3009, eip2612 and feeOnTransfer are of contracts; the native asset has none")
	}
	if d.ERC3009 != nil {
		if form := d.ERC3009.Form; form != BytesForm && form != VRSForm {
			return fmt.Errorf("erc3009.form must be %q or %q, not %q", BytesForm, VRSForm, form)
		}
		if err := d.ERC3009.Domain().validate(); err != nil {
			return fmt.Errorf("erc3009.%w", err)
		}
	}
	if d.EIP2612 != nil {
		if err := d.EIP2612.validate(); err != nil {
			return fmt.Errorf("eip2612.%w", err)
		}
	}
	return nil
}

func (d EIP712Domain) validate() error {
	for _, member := range []struct{ name, text string }{{"name", d.Name}, {"version", d.Version}} {
		if !printable(member.text) || utf8.RuneCountInString(member.text) > maxDomainLength {
			return fmt.Errorf("%s must have 1 to %d printable characters", member.name, maxDomainLength)
		}
	}
	return nil
}

// sameDefinition compares what the contract is, not how people are shown it.
func (d Token) sameDefinition(other Token) bool {
	return d.Symbol == other.Symbol && d.Decimals == other.Decimals && d.FeeOnTransfer == other.FeeOnTransfer &&
		samePointee(d.ERC3009, other.ERC3009) && samePointee(d.EIP2612, other.EIP2612)
}

func samePointee[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func isSymbol(s string) bool { return printable(s) && utf8.RuneCountInString(s) <= maxSymbolLength }

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
