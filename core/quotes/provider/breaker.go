package provider

import (
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sony/gobreaker/v2"

	"intents.internal/core/quotes/quote"
)

const (
	// tripAfter is how many failures in a row open a provider's circuit breaker, for openFor.
	tripAfter = 5
	openFor   = 10 * time.Second
	// blamedBy is how many accounts' calls must have failed for the provider to be down for everybody. A route that one account alone asks
	// for can be what the provider is too slow for.
	blamedBy = 3
)

// breaker is the circuit breaker of one provider. While it is open, it lets accounts through whose calls have not failed, until those of
// blamedBy accounts have.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[[]byte]
	mu      sync.Mutex
	// failing are up to blamedBy accounts whose calls have failed since the provider last worked.
	failing map[uuid.UUID]bool
}

func newBreaker() *breaker {
	return &breaker{
		failing: map[uuid.UUID]bool{},
		circuit: gobreaker.NewCircuitBreaker[[]byte](gobreaker.Settings{
			Timeout:      openFor,
			ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
			IsSuccessful: func(err error) bool { return !isOutage(err) },
			IsExcluded:   saysNothing,
		}),
	}
}

// isOutage reports whether a call failed because the provider is down or slow.
func isOutage(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	return ok && !failure.abandoned && (failure.Code == quote.ProviderTimeout || failure.Code == quote.ProviderUnavailable)
}

// saysNothing reports whether the end of a call says nothing of the provider's health: the caller ended it, or the provider refused the question.
func saysNothing(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	return ok && (failure.abandoned || failure.Code == quote.NoQuote)
}

// do calls the provider, unless the breaker is open: gobreaker.ErrOpenState or gobreaker.ErrTooManyRequests. Other errors are an *Error.
func (b *breaker) do(account uuid.UUID, call func() ([]byte, error)) ([]byte, error) {
	recorded := func() ([]byte, error) {
		body, err := call()
		if isOutage(err) {
			b.blame(account)
		}
		return body, err
	}
	if b.circuit.State() != gobreaker.StateClosed && b.spares(account) {
		return recorded()
	}
	body, err := b.circuit.Execute(recorded)
	if !isOutage(err) && !saysNothing(err) && b.circuit.State() == gobreaker.StateClosed {
		b.forgive()
	}
	return body, err
}

func (b *breaker) spares(account uuid.UUID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.failing) < blamedBy && !b.failing[account]
}

func (b *breaker) blame(account uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failing) < blamedBy {
		b.failing[account] = true
	}
}

// forgive forgets who failed: the provider works.
func (b *breaker) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.failing)
}
