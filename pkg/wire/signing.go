package wire

import "slices"

// SigningScheme is how a user authorizes an intent by a signature, which any account can send.
type SigningScheme string

const (
	// Permit2 signs a PermitBatchWitnessTransferFrom of Uniswap's Permit2, which needs an allowance of the token to Permit2.
	Permit2 SigningScheme = "permit2"
	// ERC3009 signs an authorization of the token itself (ERC-3009), which needs no earlier transaction.
	ERC3009 SigningScheme = "erc3009"
)

// SigningSchemes are all schemes.
var SigningSchemes = []SigningScheme{Permit2, ERC3009}

func (d *decoder) signing(scheme *SigningScheme) {
	text, ok := d.text()
	if !ok {
		return
	}
	if !slices.Contains(SigningSchemes, SigningScheme(text)) {
		d.issue("must be permit2 or erc3009")
		return
	}
	*scheme = SigningScheme(text)
}
