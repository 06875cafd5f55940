package provider

import (
	"sync"

	"github.com/google/uuid"
)

const (
	// maxInFlight bounds the calls to a provider in flight, and maxPerAccount those of one account, so that an account that asks all the
	// time, or whose routes are slow, leaves room for others.
	maxInFlight, maxPerAccount = 64, 16
)

// slots counts the calls in flight. Nobody waits for a slot: a quote that comes late is worth nothing.
type slots struct {
	mu    sync.Mutex
	total int
	// accounts has no zeros.
	accounts map[uuid.UUID]int
}

// acquire takes a slot if one is free. The caller releases it.
func (s *slots) acquire(account uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total == maxInFlight || s.accounts[account] == maxPerAccount {
		return false
	}
	s.total++
	s.accounts[account]++
	return true
}

func (s *slots) release(account uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.accounts[account]--; s.accounts[account] == 0 {
		delete(s.accounts, account)
	}
}
