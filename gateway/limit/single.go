package limit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/trace"
)

// single keeps buckets on one server, alone or a master that Sentinels name: a batch is one script call for each rule in it.
type single struct {
	redis   redis.UniversalClient
	budget  time.Duration
	metrics metrics
	batcher batcher[bucketTake]
	breaker *gobreaker.CircuitBreaker[string]
}

// bucketTake is one request of a bucket, and the decision once there is one.
type bucketTake struct {
	bucket   *bucket
	rule     redis_rate.Limit
	decision Decision
}

func newSingle(client redis.UniversalClient, budget time.Duration, m metrics) *single {
	s := &single{redis: client, budget: budget, metrics: m, breaker: newBreaker()}
	s.batcher.run = s.runBatch
	return s
}

func (s *single) take(span trace.Span, b *bucket, rule redis_rate.Limit) (Decision, error) {
	t, err := s.batcher.do(span, bucketTake{bucket: b, rule: rule})
	return t.decision, err
}

// runBatch makes one call for each rule in the batch, most often one.
func (s *single) runBatch(batch []*pending[bucketTake]) error {
	s.metrics.batch.Observe(float64(len(batch)))
	slices.SortStableFunc(batch, func(a, b *pending[bucketTake]) int {
		x, y := a.item.rule, b.item.rule
		return cmp.Or(cmp.Compare(x.Rate, y.Rate), cmp.Compare(x.Burst, y.Burst), cmp.Compare(x.Period, y.Period))
	})
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].item.rule == batch[0].item.rule {
			n++
		}
		if err := s.evalTakeMany(batch[:n], batch[0].item.rule); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// evalTakeMany is one script call within the budget, unless the breaker is open.
func (s *single) evalTakeMany(batch []*pending[bucketTake], rule redis_rate.Limit) error {
	keys := make([]string, len(batch))
	for i, p := range batch {
		keys[i] = p.item.bucket.key
	}
	askedAt, span := time.Now(), startBatchSpan("EVALSHA", batch)
	reply, err := s.breaker.Execute(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), s.budget)
		defer cancel()
		return takeMany.Run(ctx, s.redis, keys, rule.Burst, rule.Rate, rule.Period.Seconds()).Text()
	})
	endBatchSpan(span, err)
	s.metrics.countCall(err)
	if err != nil {
		return err
	}
	rtt := time.Since(askedAt)
	s.metrics.roundTrip.Observe(rtt.Seconds())
	if err := parseReply(reply, rule, batch); err != nil {
		return err
	}
	for _, p := range batch {
		p.item.bucket.update(p.item.decision, askedAt, rtt)
	}
	return nil
}

func (s *single) degraded() float64 { return openShare(s.breaker) }

// openShare is 0 for a closed breaker, else 1.
func openShare(breaker *gobreaker.CircuitBreaker[string]) float64 {
	if breaker.State() == gobreaker.StateClosed {
		return 0
	}
	return 1
}

func (s *single) close() {}
