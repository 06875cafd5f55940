package limit

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// giveBack moves the time at which a bucket is full back by that of one token, ARGV[1] in seconds. It keeps redis_rate's
// keys and state: seconds since 2017, by the clock of Redis. It answers when the bucket is full, in seconds from now.
var giveBack = redis.NewScript(`
local now = redis.call("TIME")
now = (now[1] - 1483228800) + (now[2] / 1000000)
local full = tonumber(redis.call("GET", KEYS[1]) or now) - ARGV[1]
if full > now then
  redis.call("SET", KEYS[1], full, "EX", math.ceil(full - now))
else
  redis.call("DEL", KEYS[1])
end
return tostring(math.max(0, full - now))
`)

// redisRatePrefix is what redis_rate puts before every name.
const redisRatePrefix = "rate:"

// Reserve is Take for a budget that protects the service: this replica never takes more than the rule allows, whatever
// becomes of Redis, and while Redis does not answer its copy decides, whatever the policy.
func (l *Limiter) Reserve(name string, rule redis_rate.Limit) Decision {
	own := l.copies.of(name)
	if d := own.reserve(rule, time.Now()); !d.Allowed {
		l.metrics.refusedFromMemory.Inc()
		return d
	}
	d, _ := l.take(name, rule, Local) // which has no error
	if !d.Allowed {
		own.unreserve(token(rule))
	}
	return d
}

// Return gives back what one Reserve took. For the time of one token, replicas may still refuse from memory what would
// pass again.
func (l *Limiter) Return(name string, rule redis_rate.Limit) {
	l.copies.of(name).unreserve(token(rule))
	if _, err := l.ask(name, rule, (*Limiter).giveBack); err != nil {
		l.copies.of(name).giveBack(token(rule))
	}
}

func (l *Limiter) giveBack(ctx context.Context, name string, rule redis_rate.Limit) (*redis_rate.Result, error) {
	full, err := giveBack.Run(ctx, l.redis, []string{redisRatePrefix + name}, token(rule).Seconds()).Float64()
	return &redis_rate.Result{ResetAfter: time.Duration(full * float64(time.Second))}, err
}

// token is the time in which the bucket refills by one.
func token(rule redis_rate.Limit) time.Duration { return rule.Period / time.Duration(rule.Rate) }
