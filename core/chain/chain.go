// Package chain defines the chains of transfers and the rules for their definitions.
//
// Chains are operator data: the environment, the domain in orders and the settler of a chain come from an imported
// file, never from code.
package chain

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// Chain is one chain of the registry.
type Chain struct {
	ID             caip.ChainID
	Name           string
	Environment    network.Environment
	NativeCurrency Currency
	// Domain names the chain inside orders. It is often, but not always, the chain number: see DefaultDomain.
	Domain uint32
	// Settler opens and fills orders on this chain; a chain without one, nil, has no swaps or bridges.
	Settler *Settler
}

// Currency is a chain's native currency.
type Currency struct {
	Name     string
	Symbol   string
	Decimals uint8
}

// Settler is an ERC-7683 origin settler contract.
type Settler struct {
	// Address is in EIP-55 spelling.
	Address string
	// SameChain means that the settler can fill an order on the chain it was opened on, which a swap needs.
	SameChain bool
}

// ErrNoDomain is returned where a chain names no domain and its number does not fit one.
var ErrNoDomain = errors.New("has no domain and its chain number does not fit the 32 bits of one")

// DefaultDomain is the domain of a chain that names none: its number, if that fits 32 bits.
func DefaultDomain(id caip.ChainID) (uint32, error) {
	number, ok := id.Number()
	if !ok || number > math.MaxUint32 {
		return 0, ErrNoDomain
	}
	return uint32(number), nil
}

// validate reports the first rule the definition breaks.
func (c Chain) validate() error {
	switch {
	case c.ID.Namespace != caip.EIP155:
		return fmt.Errorf("namespace %s is not supported: transactions are built for eip155 chains only", c.ID.Namespace)
	case !named(c.Name):
		return errors.New("name must have 1 to 128 characters")
	case !named(c.NativeCurrency.Symbol):
		return errors.New("nativeCurrency.symbol must have 1 to 128 characters")
	}
	if _, err := network.Parse(string(c.Environment)); err != nil {
		return err
	}
	return nil
}

func named(s string) bool {
	n := utf8.RuneCountInString(s)
	return n >= 1 && n <= 128 && strings.IndexByte(s, 0) < 0 && utf8.ValidString(s)
}
