// Package network names the two environments that chains and API keys belong to.
//
// It owns the words and nothing else: which chain is in which environment is operator data kept by core.
package network

import "fmt"

// Environment tells play money from real money. The zero value is no environment and is never valid.
type Environment string

const (
	// Test holds the testnet chains; keys that begin with sk_test_ work there.
	Test Environment = "test"
	// Live holds the mainnet chains; keys that begin with sk_live_ work there.
	Live Environment = "live"
)

// Parse reads "test" or "live", exactly as written.
func Parse(s string) (Environment, error) {
	switch env := Environment(s); env {
	case Test, Live:
		return env, nil
	default:
		return "", fmt.Errorf(`environment must be "test" or "live", not %q`, s)
	}
}
