package screening_test

import (
	"testing"

	"intents.internal/core/screening"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// An entry with a chain is that chain's account, for whoever pays, receives or signs in.
func TestScreen_OneChain(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.write("b.txt", "eip155:8453:"+address(201)+" a contract")
	s.Poll(t.Context())
	for chain, want := range map[uint64]bool{1: false, 8453: true} {
		listed, nobody := caip.AccountID{Chain: caip.EIP155Chain(chain), Address: address(201)}, caip.AccountID{Chain: caip.EIP155Chain(1), Address: address(1)}
		for side, err := range map[screening.Side]error{
			screening.SourceSide:      s.Check(screening.AtCreation, network.Live, listed, nobody),
			screening.DestinationSide: s.Check(screening.AtCreation, network.Live, nobody, listed),
			screening.WalletSide:      s.CheckWallet(listed),
		} {
			if got := err != nil; got != want {
				t.Errorf("%s on chain %d: refused is %t, want %t", side, chain, got, want)
			}
		}
	}
}
