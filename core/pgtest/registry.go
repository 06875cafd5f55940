package pgtest

import (
	"bytes"
	_ "embed"
	"testing"
	"time"

	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/pkg/caip"
)

// The registry of the tests: Ethereum, which is live and has no settlement, and four testnets, of which Sepolia's settlement
// fills swaps, Base Sepolia's does not, Arbitrum Sepolia has none and Far's number has more than 32 bits. All have USDC.
var (
	//go:embed registry/chains.json
	ChainsJSON []byte
	//go:embed registry/tokens.json
	TokensJSON []byte
)

// LoadRegistry imports ChainsJSON and TokensJSON and returns the registry they make.
func LoadRegistry(tb testing.TB, store *rooms.Rooms) *registry.Snapshot {
	tb.Helper()
	chains, err := registry.ReadChainList(bytes.NewReader(ChainsJSON))
	if err != nil || len(chains.Refused) > 0 {
		tb.Fatalf("read the chains: %v, refused %+v", err, chains.Refused)
	}
	tokens, err := registry.ReadTokenList(bytes.NewReader(TokensJSON), func(caip.ChainID) bool { return true })
	if err != nil || len(tokens.Refused) > 0 {
		tb.Fatalf("read the tokens: %v, refused %+v", err, tokens.Refused)
	}
	silent := func(int) {}
	if _, err := store.Registry.ImportChains(tb.Context(), chains.Chains, time.Now(), silent); err != nil {
		tb.Fatal(err)
	}
	if _, err := store.Registry.ImportTokens(tb.Context(), tokens.Tokens, time.Now(), silent); err != nil {
		tb.Fatal(err)
	}
	snapshot, err := store.Registry.Registry(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot
}
