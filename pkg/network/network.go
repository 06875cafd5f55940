// Package network names the two environments that chains and API keys belong to.
//
// It owns only the names: core stores which chain is in which environment.
package network

import "fmt"

// Environment separates test funds from real funds. The zero value is invalid.
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
