package limit

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tokenbucket"
)

// single keeps buckets on one server, standalone or a master behind Sentinels. A batch is one script call for each pair of rules
// in it.
type single struct {
	redis   redis.UniversalClient
	budget  time.Duration
	metrics metrics
	batcher batcher[tokenTake]
	breaker *gobreaker.CircuitBreaker[string]
	// call is used only by the leader.
	call tokenbucket.Call
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

func (s *single) take(span trace.Span, r request) (Decision, error) {
	t, err := s.batcher.do(span, tokenTake{request: r})
	return t.decision, err
}

// runBatch makes one call for each pair of rules in the batch. Usually there is one.
func (s *single) runBatch(batch []*pending[tokenTake]) error {
	s.metrics.batch.Observe(float64(len(batch)))
	sortTakes(batch)
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].item.rules == batch[0].item.rules {
			n++
		}
		if err := s.takeTokens(batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// takeTokens makes one call within the budget, unless the breaker is open.
func (s *single) takeTokens(batch []*pending[tokenTake]) error {
	addTakes(&s.call, batch)
	var reply []int64
	askedAt, span := time.Now(), startBatchSpan("EVALSHA", batch)
	_, err := s.breaker.Execute(func() (_ string, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), s.budget)
		defer cancel()
		reply, err = s.call.Do(ctx, s.redis)
		return "", err
	})
	endBatchSpan(span, err)
	s.metrics.countCall(err)
	if err != nil {
		return err
	}
	rtt := time.Since(askedAt)
	s.metrics.roundTrip.Observe(rtt.Seconds())
	setDecisions(batch, reply, askedAt, rtt)
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
