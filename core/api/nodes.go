package api

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
)

// nodesTimeout bounds how long a request waits for the nodes of a chain. It is below requestTimeout.
const nodesTimeout = 3 * time.Second

// askNodes asks the providers of a chain, the best first, until one answers; ask returns an error for an answer of no use. The error
// wraps rpc.ErrNoProvider where there is none to ask.
func (s *Server) askNodes(ctx context.Context, id caip.ChainID, ask func(ctx context.Context, p *rpc.Provider) error) error {
	if s.Chains == nil {
		return fmt.Errorf("ask the nodes of %s: %w", id, rpc.ErrNoProvider)
	}
	chain, ok := s.Chains.Chain(id)
	if !ok {
		return fmt.Errorf("ask the nodes of %s: %w", id, rpc.ErrNoProvider)
	}
	deadline := time.Now().Add(nodesTimeout)
	var failures []error
	for left := chain.Providers(); len(left) > 0 && time.Now().Before(deadline) && ctx.Err() == nil; left = left[1:] {
		if left[0].Busy() { // the rest of its calls is for following the chain
			failures = append(failures, fmt.Errorf("%s: over half of requestsPerSecond in CORE_RPC_FILE", left[0].Host()))
			continue
		}
		// Half the time is kept for the providers after this one.
		attempt, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(min(len(left), 2)))
		err := ask(attempt, left[0])
		cancel()
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return fmt.Errorf("ask the nodes of %s: %w: %w", id, noNode(id), errors.Join(failures...))
}

// noNode is the 503 for a chain whose nodes do not answer.
func noNode(id caip.ChainID) *apiError {
	return unavailable(fmt.Sprintf("No node of chain %s answers; try again in a second.", id))
}

// word reads a number that a contract returned; ok is false for an answer of another form, which is no contract's or another one's.
func word(returned []byte) (number *big.Int, ok bool) {
	if len(returned) != common.HashLength {
		return nil, false
	}
	return new(big.Int).SetBytes(returned), true
}
