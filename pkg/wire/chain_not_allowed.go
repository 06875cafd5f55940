package wire

import (
	"fmt"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// ChainNotAllowed is the body of the 403 that keeps test keys on testnet chains and live keys on mainnet chains.
type ChainNotAllowed struct {
	Code    Code                `json:"code"`
	Message string              `json:"message"`
	ChainID uint64              `json:"chainId"`
	KeyEnv  network.Environment `json:"keyEnv"`
	// Details are those of a batch, nil for one intent.
	Details *PathDetails `json:"details,omitempty"`
}

// PathDetails are the details of an error of one item of a batch.
type PathDetails struct {
	// Path is a JSON Pointer into the body.
	Path string `json:"path"`
}

// NewChainNotAllowed is the body for chain, in environment chainEnv, and a key of environment keyEnv.
func NewChainNotAllowed(chain caip.ChainID, chainEnv, keyEnv network.Environment) ChainNotAllowed {
	number, _ := chain.Number()
	return ChainNotAllowed{
		Code:    ChainNotAllowedForKey,
		Message: fmt.Sprintf("Chain %s is a %s chain and this is a %s key; use a %s key.", chain, chainEnv, keyEnv, chainEnv),
		ChainID: number,
		KeyEnv:  keyEnv,
	}
}
