// Package network names the two environments that chains and API keys belong to.
//
// It owns the names only: which chain belongs to which environment is operator data in core.
package network

import "fmt"

// Environment separates testnets from mainnets. The zero value is not a valid environment.
type Environment string

const (
	// Test has the testnet chains. Its keys begin with sk_test_.
	Test Environment = "test"
	// Live has the mainnet chains. Its keys begin with sk_live_.
	Live Environment = "live"
)

// Parse accepts exactly "test" or "live".
func Parse(s string) (Environment, error) {
	switch env := Environment(s); env {
	case Test, Live:
		return env, nil
	default:
		return "", fmt.Errorf(`environment must be "test" or "live", not %q`, s)
	}
}
