package main

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// faucetAPI is the namespace faucet of the JSON-RPC.
type faucetAPI struct{ chain *chain }

// Fund is faucet_fund: it sends an account 10 ETH and 1,000 of each token, and returns the transactions once they are in a block.
func (f *faucetAPI) Fund(ctx context.Context, account common.Address) ([]common.Hash, error) {
	calls := []call{{to: &account, value: units(10, 18)}}
	for _, t := range tokens {
		calls = append(calls, t.mint(account, 1_000))
	}
	hashes := make([]common.Hash, len(calls))
	for i, call := range calls {
		var err error
		if hashes[i], err = f.chain.faucet.send(ctx, call); err != nil {
			return nil, fmt.Errorf("fund %s: %w", account, err)
		}
	}
	return hashes, f.chain.succeeded(ctx, hashes)
}
