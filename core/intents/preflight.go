package intents

import (
	"context"
	"errors"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

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

// Preflight simulates the steps of an intent's transaction in the current state of its chain. It returns transfer.ErrQuoteEnded, a
// *StatusError of transfer.ErrNotSendable, rpc.ErrNoProvider for a chain without nodes, or an *rpc.NoAnswerError.
func (s *Service) Preflight(ctx context.Context, intent *transfer.Intent, stepsOf transfer.StepsOf) (Preflight, error) {
	if err := s.refuseHandOut(ctx, intent); err != nil {
		return Preflight{}, err
	}
	history, err := s.Store.TransferHistory(ctx, intent)
	if err != nil {
		return Preflight{}, err
	}
	now := s.Store.Now()
	at := s.momentOf(intent, history, now)
	if intent.Signing.Scheme != "" {
		return s.preflightSigned(ctx, intent, at)
	}
	switch err := intent.Sendable(at); {
	case errors.Is(err, transfer.ErrNotSendable):
		return Preflight{}, &StatusError{intent.Status, err}
	case err != nil:
		return Preflight{}, err
	}
	tx, err := intent.Tx(at)
	if err != nil {
		return Preflight{}, err
	}
	checks, gas, err := Simulate(ctx, s.Chains, intent, tx, stepsOf, now)
	return Preflight{checks, gas}, err
}
