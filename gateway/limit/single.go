package limit

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"intents.internal/pkg/tokenbucket"
)

// single keeps buckets on one server, standalone or a master behind Sentinels. A batch is one round trip, with a script call for
// each pair of rules and cost in it.
type single struct {
	redis   redis.UniversalClient
	budget  time.Duration
	metrics metrics
	batcher batcher[tokenTake]
	breaker *gobreaker.CircuitBreaker[string]
	// calls and groups are used only by the leader.
	calls  []tokenbucket.Call
	groups [][]*pending[tokenTake]
}

// tokenTake is one request and its decision.
type tokenTake struct {
	request
	decision Decision
}

func newSingle(client redis.UniversalClient, budget time.Duration, m metrics) *single {
	s := &single{redis: client, budget: budget, metrics: m, breaker: newBreaker()}
	s.batcher.run = s.runBatch
	return s
}

func (s *single) take(r request) (Decision, error) {
	t, err := s.batcher.do(tokenTake{request: r})
	return t.decision, err
}

// runBatch makes one call for each pair of rules and cost in the batch, usually one, all in one round trip within the budget, unless the
// breaker is open. A server that answered any of the calls works; only the calls without an answer fail.
func (s *single) runBatch(batch []*pending[tokenTake]) error {
	s.metrics.batch.Observe(float64(len(batch)))
	s.addCalls(batch)
	askedAt := time.Now()
	_, err := s.breaker.Execute(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), s.budget)
		defer cancel()
		tokenbucket.DoAll(ctx, s.redis, s.calls)
		return "", s.setDecisions(askedAt, time.Since(askedAt))
	})
	s.metrics.countCall(err)
	return err
}

// addCalls groups the batch by rules and cost, with a call for each group.
func (s *single) addCalls(batch []*pending[tokenTake]) {
	sortTakes(batch)
	s.groups, s.calls = s.groups[:0], s.calls[:0]
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].item.rules == batch[0].item.rules {
			n++
		}
		s.groups = append(s.groups, batch[:n])
		s.calls = slices.Grow(s.calls, 1)[:len(s.calls)+1] // with the arguments' array of an earlier batch
		addTakes(&s.calls[len(s.calls)-1], batch[:n])
		batch = batch[n:]
	}
}

// setDecisions sets the decision or the error of each request, and returns an error if no call was answered.
func (s *single) setDecisions(askedAt time.Time, rtt time.Duration) error {
	var failed error
	answered := false
	for i, group := range s.groups {
		reply, err := s.calls[i].Reply()
		if err == nil {
			answered = true
			setDecisions(group, reply, askedAt, rtt)
			continue
		}
		failed = err
		for _, p := range group {
			p.err = err
		}
	}
	if !answered {
		return failed
	}
	s.metrics.roundTrip.Observe(rtt.Seconds())
	return nil
}

func (s *single) degraded() float64 { return openShare(s.breaker) }

// openShare returns 0 for a closed breaker, else 1.
func openShare(breaker *gobreaker.CircuitBreaker[string]) float64 {
	if breaker.State() == gobreaker.StateClosed {
		return 0
	}
	return 1
}

func (s *single) close() {}
