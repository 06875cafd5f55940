package limit

import (
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/tracing"
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

// Reserve is Take for a budget that protects the service: this replica never takes more than the rule allows, whatever
// becomes of Redis, and while Redis does not answer its copy decides, whatever the policy.
func (l *Limiter) Reserve(name string, rule redis_rate.Limit) Decision {
	own, now := l.copies.of(name), time.Now()
	if d := own.reserve(rule, now); !d.Allowed {
		l.metrics.refusedFromMemory.Inc()
		return d
	}
	d, _ := l.take(tracing.Span{}, own, rule, Local, now) // which has no error
	if !d.Allowed {
		own.unreserve(token(rule))
	}
	return d
}

// Return gives back what one Reserve took. For the time of one token, replicas may still refuse from memory what would
// pass again.
func (l *Limiter) Return(name string, rule redis_rate.Limit) {
	own, token := l.copies.of(name), token(rule)
	own.unreserve(token)
	asked := time.Now()
	full, err := l.shared.giveBack(own, token)
	if err != nil {
		own.giveBack(token)
		return
	}
	own.tell(Decision{ResetAfter: full}, asked, time.Now())
}

// token is the time in which the bucket refills by one.
func token(rule redis_rate.Limit) time.Duration { return rule.Period / time.Duration(rule.Rate) }
