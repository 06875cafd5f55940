package caip

import (
	"errors"
	"strings"
)

// AccountID is a CAIP-10 account id. It identifies an account or a token contract. It is comparable: ParseAccountID stores an
// eip155 address in its EIP-55 form. The zero value is no account.
type AccountID struct {
	Chain   ChainID
	Address string
}

var errAccountID = errors.New("must be a CAIP-10 account id such as eip155:1:0x0000000000000000000000000000000000000001")

// ParseAccountID parses `<chain id>:<address>` by the CAIP-10 grammar: a CAIP-2 chain id and an address of 1–128 characters of
// [-.%a-zA-Z0-9]. In the eip155 namespace the address must pass ParseAddress and is stored in the form that it returns.
func ParseAccountID(s string) (AccountID, error) {
	cut := strings.LastIndexByte(s, ':')
	if cut < 0 || strings.IndexByte(s, ':') == cut {
		return AccountID{}, errAccountID
	}
	chain, err := ParseChainID(s[:cut])
	if err != nil {
		return AccountID{}, err
	}
	address := s[cut+1:]
	if !spelled(address, 1, 128, isAddress) {
		return AccountID{}, errAccountID
	}
	if chain.Namespace == EIP155 {
		if address, err = ParseAddress(address); err != nil {
			return AccountID{}, err
		}
	}
	return AccountID{Chain: chain, Address: address}, nil
}

// String returns the CAIP-10 form, empty for the zero value.
func (a AccountID) String() string {
	if a == (AccountID{}) {
		return ""
	}
	return a.Chain.String() + ":" + a.Address
}
