// Package caip parses and formats chain-agnostic identifiers: CAIP-2 chain ids and CAIP-10 account ids.
//
// It owns their grammar, the narrower grammar of the eip155 namespace and EIP-55 checksums. It does not know which chains and
// tokens the service supports.
package caip

import (
	"errors"
	"strconv"
	"strings"
)

// EIP155 is the CAIP-2 namespace of EVM chains.
const EIP155 = "eip155"

// ChainID is a CAIP-2 chain id such as eip155:11155111. It is comparable; the zero value is no chain.
type ChainID struct {
	Namespace string
	Reference string
}

var (
	errChainID     = errors.New("must be a CAIP-2 chain id such as eip155:1")
	errEIP155Chain = errors.New("the eip155 reference must be a decimal chain number of 1 to 16 digits without leading zeros")
)

// ParseChainID parses `<namespace>:<reference>` by the CAIP-2 grammar: a namespace of 3–8 characters of [-a-z0-9] and a reference
// of 1–32 characters of [-_a-zA-Z0-9]. An eip155 reference must also match [1-9][0-9]{0,15}.
func ParseChainID(s string) (ChainID, error) {
	namespace, reference, found := strings.Cut(s, ":")
	if !found || !spelled(namespace, 3, 8, isNamespace) || !spelled(reference, 1, 32, isReference) {
		return ChainID{}, errChainID
	}
	if namespace == EIP155 && (reference[0] == '0' || !spelled(reference, 1, 16, isDigit)) {
		return ChainID{}, errEIP155Chain
	}
	return ChainID{Namespace: namespace, Reference: reference}, nil
}

// EIP155Chain returns the id of the EVM chain with this number.
func EIP155Chain(number uint64) ChainID {
	return ChainID{Namespace: EIP155, Reference: strconv.FormatUint(number, 10)}
}

// String returns the CAIP-2 form, empty for the zero value.
func (c ChainID) String() string {
	if c == (ChainID{}) {
		return ""
	}
	return c.Namespace + ":" + c.Reference
}

// Number returns the EVM chain number; ok is false outside the eip155 namespace.
func (c ChainID) Number() (number uint64, ok bool) {
	if c.Namespace != EIP155 {
		return 0, false
	}
	number, err := strconv.ParseUint(c.Reference, 10, 64)
	return number, err == nil
}

func spelled(s string, shortest, longest int, allowed func(byte) bool) bool {
	if len(s) < shortest || len(s) > longest {
		return false
	}
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isNamespace(c byte) bool { return isLower(c) || isDigit(c) || c == '-' }

func isReference(c byte) bool { return isNamespace(c) || isUpper(c) || c == '_' }

func isAddress(c byte) bool {
	return isLower(c) || isUpper(c) || isDigit(c) || c == '-' || c == '.' || c == '%'
}
