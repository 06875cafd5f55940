package registry

import (
	"errors"
	"fmt"
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
	// Settlements are the deployments that execute orders from and to this chain, the preferred one first. Without one, the chain has no
	// swaps or bridges.
	Settlements []Settlement
	// Confirmations is the depth at which a block counts as final, 1 for the head: 1 to MaxConfirmations.
	Confirmations uint64
	// Finality is the rule that decides when a block counts as final.
	Finality Finality
	// BlockTime is the usual time between two blocks, in whole milliseconds from MinBlockTime to MaxBlockTime.
	BlockTime time.Duration
	// RPCURLs are public JSON-RPC URLs for wallets that add the chain (EIP-3085), the preferred one first: nil or 1 to
	// MaxRPCURLs, each of at most MaxURLBytes. They are https, or http to a loopback address, and never the private URLs of
	// CORE_RPC_FILE.
	RPCURLs []string
	// WrappedNative is the symbol of the token that wraps the native currency, which checks of settlers are made with. It is empty for W and the
	// currency's symbol, or WETH.
	WrappedNative string
	// Explorer is the base URL of a block explorer with the paths of EIP-3091, without a slash at its end and of at most MaxURLBytes: https, or http
	// to a loopback address. It is empty for none.
	Explorer string
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
