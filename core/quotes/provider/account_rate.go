package provider

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"intents.internal/pkg/tokenbucket"
)

const (
	// defaultAccountRequests is how many requests a minute one account may make of a provider where its entry says nothing, and
	// maxAccountRequests the most that an entry may say.
	defaultAccountRequests, maxAccountRequests = 60, 60_000
	// ratedAccounts bounds the accounts whose requests are counted, about 100 bytes each. One that is forgotten begins anew.
	ratedAccounts = 1 << 12
)

// accountRate bounds the requests of each account to a provider in time, so that none of them alone uses up what the provider grants to all:
// after a 429 it is closed to everybody.
type accountRate struct {
	rule tokenbucket.Rule
	mu   sync.Mutex
	// full is when the bucket of an account is full.
	full *simplelru.LRU[uuid.UUID, time.Time]
}

// newAccountRate returns a rate of requests a minute, of which ten seconds' worth may come at once; 0 is no bound.
func newAccountRate(requests int) *accountRate {
	full, err := simplelru.NewLRU[uuid.UUID, time.Time](ratedAccounts, nil)
	if err != nil {
		panic(err) // it is for a size below 1
	}
	return &accountRate{rule: tokenbucket.Rule{Rate: requests, Burst: (requests + 5) / 6, Period: time.Minute}, full: full}
}

// take counts a request and returns 0, or returns the time until the account may make one.
func (a *accountRate) take(account uuid.UUID) (wait time.Duration) {
	if a.rule.Rate == 0 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	full, _ := a.full.Get(account)
	full, wait = a.rule.Spend(full, time.Now())
	if wait == 0 {
		a.full.Add(account, full)
	}
	return wait
}
