package e2e_test

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// observation is how the gateways answer one key.
type observation struct {
	key string

	mu sync.Mutex
	at []taken
}

// taken is how one gateway takes a key: when the last request of each outcome began, and when the first refusal came.
// Denied is any request that was not let in, refused one that was answered 403.
type taken struct {
	statuses                              map[int]int
	lastAccepted, lastDenied, lastRefused time.Time
	firstRefusal                          time.Time
}

func newObservation(key string, gateways int) *observation {
	f := &observation{key: key, at: make([]taken, gateways)}
	for i := range f.at {
		f.at[i].statuses = map[int]int{}
	}
	return f
}

func (f *observation) note(gateway int, began time.Time, a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := &f.at[gateway]
	at.statuses[a.Status]++
	if accepted(a) {
		at.lastAccepted = later(at.lastAccepted, began)
		return
	}
	at.lastDenied = later(at.lastDenied, began)
	if a.Status != http.StatusForbidden {
		return
	}
	at.lastRefused = later(at.lastRefused, began)
	if at.firstRefusal.IsZero() {
		at.firstRefusal = time.Now()
	}
}

// accepted tells whether the gateway took the key for a good one. It looks at the key before the limit, so that being
// over the key's own limit is proof as well.
func accepted(a answer) bool {
	return a.Status < 400 || a.Status == http.StatusTooManyRequests && a.Header.Get("RateLimit-Policy") != ""
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (f *observation) state() []taken {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := slices.Clone(f.at)
	for n := range state {
		state[n].statuses = maps.Clone(state[n].statuses)
	}
	return state
}

// await returns the state in which every gateway has come to this, however busy the machine is.
func (f *observation) await(t *testing.T, what string, has func(taken) bool) []taken {
	t.Helper()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		state, missing := f.state(), false
		for _, at := range state {
			missing = missing || !has(at)
		}
		if !missing {
			return state
		}
		if time.Now().After(deadline) {
			t.Fatalf("not every gateway has %s: %+v", what, state)
		}
	}
}
