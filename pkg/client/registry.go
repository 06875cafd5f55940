package client

import (
	"context"
	"net/http"
	"net/url"
)

// Environment is what a key and a chain belong to.
type Environment string

// Environments.
const (
	Test Environment = "test"
	Live Environment = "live"
)

// Chain is a chain on which intents can be made.
type Chain struct {
	ChainID        string         `json:"chainId"` // CAIP-2
	Name           string         `json:"name"`
	Environment    Environment    `json:"environment"`
	NativeCurrency NativeCurrency `json:"nativeCurrency"`
	// Settlements are the contracts of orders. A swap or bridge needs a deployment that both its chains have.
	Settlements []Settlement `json:"settlements"`
	// Confirmations is how deep a transaction must be before an intent is confirmed.
	Confirmations int      `json:"confirmations"`
	Finality      Finality `json:"finality"`
	// Watched is set if the service follows intents on the chain.
	Watched bool `json:"watched"`
	// Explorer is the base URL of a block explorer with the paths of EIP-3091, nil for none: /tx/HASH, /address/ADDRESS and /token/ADDRESS follow.
	Explorer *string `json:"explorer"`
}

// NativeCurrency is a chain's native asset.
type NativeCurrency struct {
	Symbol   string `json:"symbol"`
	Decimals int    `json:"decimals"`
}

// Finality is what makes a block final.
type Finality string

// Finalities: a depth, or the block that the chain's consensus calls safe or finalized.
const (
	FinalityDepth     Finality = "depth"
	FinalitySafe      Finality = "safe"
	FinalityFinalized Finality = "finalized"
)

// Settlement is a deployment of the contracts that hold and pay orders.
type Settlement struct {
	Scheme        string       `json:"scheme"`
	Deployment    string       `json:"deployment"`
	InputSettler  string       `json:"inputSettler"`
	OutputSettler string       `json:"outputSettler"`
	Oracle        string       `json:"oracle"`
	ClaimPeriod   int64        `json:"claimPeriod"` // seconds from an order's deadline until it can be refunded
	MinDeadline   int64        `json:"minDeadline"` // seconds that an order's deadline must be away at least, for its solvers
	Native        bool         `json:"native"`      // takes the native asset as input
	SameChain     bool         `json:"sameChain"`   // serves swaps
	OutputOracle  OutputOracle `json:"outputOracle"`
	// Signing are the schemes whose signatures open orders here in place of the user's own transaction.
	Signing []SigningScheme `json:"signing"`
}

// SigningScheme is how a user authorizes an intent by a signature, which any account can send.
type SigningScheme string

// Signing schemes: Uniswap's Permit2, which needs an allowance once, and authorizations of the token itself (ERC-3009).
const (
	SigningSchemePermit2 SigningScheme = "permit2"
	SigningSchemeERC3009 SigningScheme = "erc3009"
)

// OutputOracle is the chain whose oracle an order's output names.
type OutputOracle string

// Output oracles.
const (
	OutputOracleDestination OutputOracle = "destination"
	OutputOracleOrigin      OutputOracle = "origin"
)

// Token is a token of the registry.
type Token struct {
	Symbol   string  `json:"symbol"`
	ChainID  string  `json:"chainId"` // CAIP-2
	Address  string  `json:"address"` // CAIP-10
	Decimals int     `json:"decimals"`
	Metadata *string `json:"metadata"`
	ERC3009  bool    `json:"erc3009"` // takes signed authorizations of its holder
	Name     *string `json:"name"`    // what people call it, nil where its list has no name
}

// Chains lists chains.
type Chains struct{ c *Client }

// List returns all chains.
func (s *Chains) List(ctx context.Context) (chains []Chain, err error) {
	_, err = s.c.do(ctx, request{method: http.MethodGet, path: "/v2/chains"}, &chains)
	return chains, err
}

// Tokens lists tokens.
type Tokens struct{ c *Client }

// List returns the tokens of a chain, such as eip155:1, or all where it is empty.
func (s *Tokens) List(ctx context.Context, chainID string) ([]Token, error) {
	return s.list(ctx, url.Values{}, chainID)
}

// Search returns at most 100 tokens that have the text in their symbol or name, or have it as their address, the best matches first. chainID is that
// of List.
func (s *Tokens) Search(ctx context.Context, text, chainID string) ([]Token, error) {
	return s.list(ctx, url.Values{"search": {text}}, chainID)
}

func (s *Tokens) list(ctx context.Context, query url.Values, chainID string) (tokens []Token, err error) {
	setNonEmpty(query, "chain-id", chainID)
	_, err = s.c.do(ctx, request{method: http.MethodGet, path: "/v2/tokens", query: query}, &tokens)
	return tokens, err
}

// setNonEmpty sets a query parameter unless it is empty, which the service refuses.
func setNonEmpty(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}
