package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// promise is how long after a key's last moment a gateway may still let the key in.
const promise = time.Second

// endings are ways in which a key ends, by name, one of each kind: by a change of the key, of its account, and by the clock. Each returns
// the key's successor, empty where it has none.
var endings = map[string]func(t *testing.T, s *stack.Stack, owner person, key createdKey) (successor string){
	"deleted":              endByRoute("/auth/api-key/delete", nil),
	"expiring in a second": endByRoute("/auth/api-key/update", map[string]any{"expiresIn": 1}),
	"expired by hand":      expireByHand,
	"rotated with grace":   endByRoute("/auth/api-key/rotate", map[string]any{"gracePeriod": 3}),
	"account disabled by the operator": func(t *testing.T, s *stack.Stack, owner person, _ createdKey) string {
		t.Helper()
		mustCore(t, s, "", "accounts", "disable", owner.email)
		return ""
	},
}

func endByRoute(path string, body map[string]any) func(*testing.T, *stack.Stack, person, createdKey) string {
	return func(t *testing.T, _ *stack.Stack, owner person, key createdKey) string {
		t.Helper()
		full := map[string]any{"keyId": key.ID}
		maps.Copy(full, body)
		return system.Expect[createdKey](t, owner.post(path, full), http.StatusOK).Key
	}
}

func expireByHand(t *testing.T, s *stack.Stack, _ person, key createdKey) string {
	t.Helper()
	system.Execute(t, s.Env().DatabaseURL, `UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1`, key.ID)
	return ""
}

// A key that has ended is refused by every gateway within a second, however it ended, and when core is killed with the news.
// A request that begins later can only be judged later, so the second holds however long requests take on a busy machine. Keys that nobody
// touches are never refused.
func TestRevocation_AllGateways(t *testing.T) {
	journey(t)
	t.Parallel()
	s, _ := startStack(t, stack.Config{Gateways: 3})
	owner := newPerson(t, s.Env().GatewayURL)
	r := &revocations{t: t, stack: s, owner: owner}
	for range 4 {
		untouched := watchKey(t, s, owner.newKey().Key)
		t.Cleanup(func() {
			for gateway, seen := range untouched.state() {
				if !seen.firstRefused.IsZero() {
					t.Errorf("gateway %d refused a key that nobody touched: %v", gateway+1, seen.statuses)
				}
			}
		})
	}
	r.all()
	r.coreKilled(t)
}

// revocations is a stack whose gateways are asked with keys that end.
type revocations struct {
	t     *testing.T
	stack *stack.Stack
	owner person
	// changing is held for a change to a key: a change that waits too long for another one of its account is refused.
	changing sync.Mutex
}

// all ends keys in every way at once.
func (r *revocations) all() {
	r.t.Helper()
	var running sync.WaitGroup
	for name, ending := range endings {
		running.Go(func() {
			r.t.Run(name, func(t *testing.T) {
				owner := r.owner
				if strings.HasPrefix(name, "account") {
					owner = newPerson(t, r.stack.Env().GatewayURL)
				}
				key, watched := r.watchedKey(t, owner)
				began, end, successor := r.change(func() string { return ending(t, r.stack, owner, key) })
				// It may have been left some time.
				expires := system.QueryRow[*time.Time](t, r.stack.Env().DatabaseURL, `SELECT max(expires_at) FROM api_keys WHERE id = $1`, key.ID)
				if expires != nil && expires.After(began) {
					began, end = *expires, slices.MaxFunc([]time.Time{end, *expires}, time.Time.Compare)
				}
				watched.mustBeRefused(t, began, end)
				if successor != "" {
					next := watchKey(t, r.stack, successor)
					next.await(t, "accepted the successor", func(at seen) bool { return !at.lastAccepted.IsZero() && at.firstRefused.IsZero() })
				}
			})
		})
	}
	running.Wait()
}

// coreKilled ends a key by hand and kills core, which has the news.
func (r *revocations) coreKilled(t *testing.T) {
	t.Helper()
	key, watched := r.watchedKey(t, r.owner)
	began := time.Now()
	expireByHand(t, r.stack, r.owner, key)
	end := time.Now()
	if err := r.stack.Kill(stack.Core); err != nil {
		t.Fatal(err)
	}
	watched.await(t, "denied the key since its end", func(at seen) bool { return at.lastDenied.After(end.Add(promise)) })
	watched.mustBeRefused(t, began, end)
}

// change makes a change to a key while nobody else makes one, and returns when it began and ended.
func (r *revocations) change(do func() (successor string)) (began, ended time.Time, successor string) {
	r.changing.Lock()
	defer r.changing.Unlock()
	began = time.Now()
	successor = do()
	return began, time.Now(), successor
}

// watchedKey is a new key that every gateway has accepted.
func (r *revocations) watchedKey(t *testing.T, owner person) (createdKey, *watched) {
	t.Helper()
	var key createdKey
	r.change(func() string { key = owner.newKey(); return "" })
	w := watchKey(t, r.stack, key.Key)
	w.await(t, "accepted the new key", func(at seen) bool { return !at.lastAccepted.IsZero() })
	return key, w
}

// watched is a key that every gateway is asked with all the time.
type watched struct {
	mu sync.Mutex
	at []seen // by gateway
}

// seen is how one gateway has answered a key. Times but firstRefused are when a request began. Denied is any request that was not let in.
type seen struct {
	statuses                                            map[int]int
	lastAccepted, lastDenied, lastRefused, firstRefused time.Time
}

// watchKey asks every gateway with the key until the test ends.
func watchKey(t *testing.T, s *stack.Stack, key string) *watched {
	t.Helper()
	urls := s.Env().GatewayURLs
	w := &watched{at: make([]seen, len(urls))}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for gateway, url := range urls {
		w.at[gateway].statuses = map[int]int{}
		c := rawClient(t, url, key)
		all.Go(func() {
			ticker := time.NewTicker(50 * time.Millisecond)
			defer ticker.Stop()
			for ; ctx.Err() == nil; <-ticker.C {
				began := time.Now()
				if a, err := c.Try(http.MethodGet, "/v2/chains", nil, "If-None-Match", "*"); err == nil {
					w.note(gateway, began, a)
				} else if t.Context().Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	return w
}

func (w *watched) note(gateway int, began time.Time, a system.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := &w.at[gateway]
	at.statuses[a.Status]++
	// A key that is over its limit was accepted: the gateway looks at the key first.
	if a.Status < 400 || a.Status == http.StatusTooManyRequests && a.Header.Get("RateLimit-Policy") != "" {
		at.lastAccepted = began
		return
	}
	at.lastDenied = began
	if a.Status != http.StatusForbidden {
		return
	}
	at.lastRefused = began
	if at.firstRefused.IsZero() {
		at.firstRefused = time.Now()
	}
}

func (w *watched) state() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := slices.Clone(w.at)
	for gateway := range state {
		state[gateway].statuses = maps.Clone(state[gateway].statuses)
	}
	return state
}

// await waits until this is true of every gateway.
func (w *watched) await(t *testing.T, what string, is func(seen) bool) {
	t.Helper()
	asynctest.Succeeds(t, func() error {
		for gateway, at := range w.state() {
			if !is(at) {
				return fmt.Errorf("gateway %d has not %s: %+v", gateway+1, what, at)
			}
		}
		return nil
	})
}

// mustBeRefused waits until every gateway refuses the key for good, and wants that none has refused it before the first time or let it in
// later than a second after the second one.
func (w *watched) mustBeRefused(t *testing.T, earliest, end time.Time) {
	t.Helper()
	w.await(t, "refused the key since its end", func(at seen) bool {
		return at.lastRefused.After(end.Add(promise)) && at.lastRefused.After(at.lastAccepted)
	})
	for gateway, at := range w.state() {
		if over := at.lastAccepted.Sub(end); over > promise {
			t.Errorf("gateway %d let a request in that began %s after the key's end", gateway+1, over)
		}
		if at.firstRefused.Before(earliest) {
			t.Errorf("gateway %d refused the key %s before its end", gateway+1, earliest.Sub(at.firstRefused))
		}
	}
}
