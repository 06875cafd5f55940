package limit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/tokenbucket"
)

// gate lets the first round trip to Redis go on only once open is closed, and counts all.
type gate struct {
	open  chan struct{}
	trips atomic.Int64
}

func (g *gate) pass() {
	if g.trips.Add(1) == 1 {
		<-g.open
	}
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.pass()
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		g.pass()
		return next(ctx, cmds)
	}
}

// Requests that wait together take one round trip, however many pairs of rules they have: else the keys of accounts with limits
// of their own would slow down everybody's. Each request is decided by its own rules.
func TestLimiter_RulesShareRoundTrip(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *embedded.Redis) {
		t.Helper()
		l := newLimiter(t, r.URL, generous, limit.Closed)
		l.take(t, uuid.NewString(), fiftyADay) // Redis knows the script from now on
		g := &gate{open: make(chan struct{})}
		l.redis.AddHook(g)
		var all sync.WaitGroup
		all.Go(func() { l.take(t, uuid.NewString(), fiftyADay) })
		asynctest.Eventually(t, "the first request is on its way", func() bool { return g.trips.Load() == 1 })
		const rules, each = 20, 3
		var allowed [rules]atomic.Int64
		for n := range rules {
			// Each key has one token less than requests, or none less.
			rule, key := tokenbucket.Per(each-n%2, time.Duration(24+n)*time.Hour), uuid.NewString()
			for range each {
				all.Go(func() {
					if d, err := l.Take(key, rule, time.Now()); err != nil {
						t.Error(err)
					} else if d.Allowed {
						allowed[n].Add(1)
					}
				})
			}
		}
		asynctest.Eventually(t, "the others wait", func() bool { return limit.Waiting(l.Limiter) == rules*each })
		close(g.open)
		all.Wait()
		if got := g.trips.Load(); got != 2 {
			t.Errorf("%d round trips, want one for the first request and one for %d pairs of rules", got, rules)
		}
		for n := range rules {
			if got, want := allowed[n].Load(), int64(each-n%2); got != want {
				t.Errorf("rule %d: %d of %d requests passed, want %d", n, got, each, want)
			}
		}
	})
}
