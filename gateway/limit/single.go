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

// single keeps buckets on one server, alone or a master that Sentinels name: batches are one script call each.
type single struct {
	redis    redis.UniversalClient
	budget   time.Duration
	metrics  metrics
	combiner combiner
	breaker  *gobreaker.CircuitBreaker[string]
}

func newSingle(client redis.UniversalClient, budget time.Duration, m metrics) *single {
	s := &single{redis: client, budget: budget, metrics: m, breaker: newBreaker()}
	s.combiner.ask = s.ask
	return s
}

func (s *single) decide(span trace.Span, own *bucket, rule redis_rate.Limit) (Decision, error) {
	return s.combiner.decide(span, own, rule)
}

// ask lets Redis decide on a batch, in one call for each rule in it, most often one.
func (s *single) ask(batch []*request) error {
	s.metrics.batch.Observe(float64(len(batch)))
	slices.SortStableFunc(batch, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.rule.Rate, b.rule.Rate), cmp.Compare(a.rule.Burst, b.rule.Burst), cmp.Compare(a.rule.Period, b.rule.Period))
	})
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].rule == batch[0].rule {
			n++
		}
		if err := s.askOne(batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// askOne is one call, for requests of one rule.
func (s *single) askOne(batch []*request) error {
	rule := batch[0].rule
	keys := make([]string, len(batch))
	for i, r := range batch {
		keys[i] = r.bucket.key
	}
	asked, span := time.Now(), startCall("EVALSHA", batch)
	reply, err := s.call(takeMany, keys, rule.Burst, rule.Rate, rule.Period.Seconds())
	endCall(span, err)
	if err != nil {
		return err
	}
	answered := time.Now()
	s.metrics.roundTrip.Observe(answered.Sub(asked).Seconds())
	if err := readReply(reply, rule, batch); err != nil {
		return err
	}
	for _, r := range batch {
		r.bucket.tell(r.decision, asked, answered)
	}
	return nil
}

// call runs a script within the budget, unless the breaker keeps it from Redis.
func (s *single) call(script *redis.Script, keys []string, args ...any) (string, error) {
	return s.breaker.Execute(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), s.budget)
		defer cancel()
		return script.Run(ctx, s.redis, keys, args...).Text()
	})
}

func (s *single) away() float64 { return breakerAway(s.breaker) }

// breakerAway is 1 where the breaker keeps requests from its server, else 0.
func breakerAway(breaker *gobreaker.CircuitBreaker[string]) float64 {
	if breaker.State() == gobreaker.StateClosed {
		return 0
	}
	return 1
}

func (s *single) close() {}
