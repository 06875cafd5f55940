package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"intents.internal/pkg/caip"
)

// timeout bounds the wait for the nodes of a chain. It is below a request's limit of five seconds.
const askTimeout = 3 * time.Second

// NoAnswerError is returned if no node of a chain returns a usable answer.
type NoAnswerError struct {
	Chain caip.ChainID
	Err   error
}

func (e *NoAnswerError) Error() string { return fmt.Sprintf("ask the nodes of %s: %v", e.Chain, e.Err) }

func (e *NoAnswerError) Unwrap() error { return e.Err }

// Ask calls ask with the providers of a chain, the best first, until it succeeds; ask returns an error for an unusable
// answer. The error wraps ErrNoProvider if the chain has no provider, and is a NoAnswerError if all failed.
func Ask(ctx context.Context, client *Client, id caip.ChainID, ask func(ctx context.Context, p *Provider) error) error {
	if client == nil {
		return fmt.Errorf("ask the nodes of %s: %w", id, ErrNoProvider)
	}
	chain, ok := client.Chain(id)
	if !ok {
		return fmt.Errorf("ask the nodes of %s: %w", id, ErrNoProvider)
	}
	deadline := time.Now().Add(askTimeout)
	var failures []error
	for left := chain.Providers(); len(left) > 0 && time.Now().Before(deadline) && ctx.Err() == nil; left = left[1:] {
		if left[0].Busy() { // its remaining calls are reserved for following the chain
			failures = append(failures, fmt.Errorf("%s: over half of requestsPerSecond in CORE_RPC_FILE", left[0].Host()))
			continue
		}
		// Half of the remaining time is reserved for the next providers.
		attempt, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(min(len(left), 2)))
		err := ask(attempt, left[0])
		cancel()
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return &NoAnswerError{id, errors.Join(failures...)}
}
