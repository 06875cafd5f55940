package intent

import (
	"context"
	"errors"

	"intents.internal/core/chains/onchain"
	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
)

// ErrNotSendable is returned for the preflight of an intent whose transaction must not be sent: its status or its deadline does
// not allow it.
var ErrNotSendable = errors.New("the intent's transaction must not be sent any more")

// Preflight is what an intent's transaction would do if it was sent now.
type Preflight struct {
	Checks []transfer.Check
	// Gas is what all calls need together, nil if one of them would fail or none can tell.
	Gas *string
}

// CanPreflight reports whether a chain has nodes to ask.
func (s *Service) CanPreflight(id caip.ChainID) bool {
	if s.Chains == nil {
		return false
	}
	_, known := s.Chains.Chain(id)
	return known
}

// Preflight simulates the steps of an intent's transaction in the current state of its chain. It returns ErrNotSendable, rpc.ErrNoProvider for
// a chain without nodes, or an *onchain.NoAnswerError.
func (s *Service) Preflight(ctx context.Context, intent *transfer.Intent, stepsOf transfer.StepsOf) (Preflight, error) {
	now := s.Store.Now()
	tx, err := intent.Tx(now, s.blockTime(intent))
	if err != nil {
		return Preflight{}, err
	}
	if tx == nil {
		return Preflight{}, &StatusError{intent.Status, ErrNotSendable}
	}
	checks, gas, err := onchain.Preflight(ctx, s.Chains, intent, tx, stepsOf, now)
	return Preflight{checks, gas}, err
}
