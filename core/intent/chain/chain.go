// Package chain defines the chains of transfers and the rules for their definitions.
//
// Chains are operator data: the environment, the domain in orders, the settler of a chain and its confirmations come from an
// imported file, never from code.
package chain

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
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
	// Domain identifies the chain in orders. It is often, but not always, the chain number: see DefaultDomain.
	Domain uint32
	// Settler opens and fills orders on this chain. If it is nil, the chain has no swaps or bridges.
	Settler *Settler
	// Confirmations is the depth at which a block counts as final, 1 for the head: 1 to MaxConfirmations.
	Confirmations uint64
	// Finality is the rule that decides when a block counts as final.
	Finality Finality
	// BlockTime is the usual time between two blocks, in whole milliseconds from MinBlockTime to MaxBlockTime.
	BlockTime time.Duration
	// RPCURLs are public JSON-RPC URLs for wallets that add the chain (EIP-3085), the preferred one first: nil or 1 to
	// MaxRPCURLs, each of at most MaxRPCURLBytes. They are https, or http to a loopback address, and never the private URLs of
	// CORE_RPC_FILE.
	RPCURLs []string
}

// The bounds and the defaults of Confirmations and BlockTime.
const (
	DefaultConfirmations = 12
	MaxConfirmations     = 10_000

	DefaultBlockTime = 12 * time.Second
	MinBlockTime     = 50 * time.Millisecond
	MaxBlockTime     = 10 * time.Minute
)

// DefaultDepthTime is how much chain time the default depth covers at least: 12 blocks are 3 seconds where a block takes 250 ms.
const DefaultDepthTime = time.Minute

// DefaultDepth returns the number of confirmations of a chain that names none: DefaultConfirmations, or more on a chain whose
// blocks are so fast that they would not cover DefaultDepthTime.
func DefaultDepth(blockTime time.Duration) uint64 {
	blocks := (DefaultDepthTime + blockTime - 1) / blockTime
	return max(DefaultConfirmations, uint64(blocks)) //nolint:gosec // at most 1,200, of MinBlockTime
}

// Finality is a rule for when a block counts as final.
type Finality string

// The three rules.
const (
	// Depth requires Confirmations blocks, including the block itself. It is the default.
	Depth Finality = "depth"
	// Safe uses the JSON-RPC block tag "safe".
	Safe Finality = "safe"
	// Finalized uses the JSON-RPC block tag "finalized".
	Finalized Finality = "finalized"
)

// ParseFinality parses one of the three rules exactly.
func ParseFinality(s string) (Finality, error) {
	switch f := Finality(s); f {
	case Depth, Safe, Finalized:
		return f, nil
	default:
		return "", fmt.Errorf(`finality must be "depth", "safe" or "finalized", not %q`, s)
	}
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
	// SameChain means that the settler can fill an order on the chain where it was opened, which a swap needs.
	SameChain bool
	// Scheme is the order encoding of the settler: OrderDataScheme.
	Scheme string
}

// OrderDataScheme is the scheme of orders that are ABI-encoded OrderData, with their Keccak-256 as the id. There is no other
// scheme.
const OrderDataScheme = "erc7683-v1/OrderData"

// ErrNoDomain is returned if a chain has no domain and its number does not fit 32 bits.
var ErrNoDomain = errors.New("has no domain and its chain number does not fit the 32 bits of one")

// DefaultDomain returns the domain of a chain without an explicit one: its number, if it fits 32 bits.
func DefaultDomain(id caip.ChainID) (uint32, error) {
	number, ok := id.Number()
	if !ok || number > math.MaxUint32 {
		return 0, ErrNoDomain
	}
	return uint32(number), nil
}

// validate returns an error for the first rule that the definition breaks.
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
