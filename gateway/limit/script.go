package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// bucketPrefix is the prefix of redis_rate's keys.
const bucketPrefix = "rate:"

// takeMany takes one token from each of many buckets under one rule. Its keys, state and arithmetic are redis_rate's, so that
// both read each other's buckets and decide alike, with two differences: the clock is read once for the batch, and a bucket
// that was written under a later clock counts as empty, where redis_rate would refuse until that time comes.
//
// The reply has one number for each bucket, in order and separated by spaces: the microseconds until the bucket is full, or
// -1 minus these where the request is refused. The rest of a decision follows from the number and the rule.
var takeMany = redis.NewScript(`
local burst, rate, period = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local emission_interval = period / rate
local burst_offset = emission_interval * burst
-- Seconds since 2017, as in redis_rate: a double holds them to the microsecond until 2048.
local time = redis.call("TIME")
local now = (time[1] - 1483228800) + (time[2] / 1000000)

local tats = redis.call("MGET", unpack(KEYS))
local written = {}
local reply = {}
for i, key in ipairs(KEYS) do
  local tat = math.max(tonumber(written[key] or tats[i] or now), now)
  if tat > now + burst_offset then
    tat = now + burst_offset
    redis.call("SET", key, tat, "EX", math.ceil(burst_offset))
    written[key] = tat
  end
  local new_tat = tat + emission_interval
  if now - (new_tat - burst_offset) < 0 then
    reply[i] = string.format("%.0f", -1 - (tat - now) * 1000000)
  else
    if new_tat > now then
      redis.call("SET", key, new_tat, "EX", math.ceil(new_tat - now))
      written[key] = new_tat
    end
    reply[i] = string.format("%.0f", (new_tat - now) * 1000000)
  end
end
return table.concat(reply, " ")
`)

// emptyBucket empties a bucket that takes ARGV[1] seconds to refill.
var emptyBucket = redis.NewScript(`
local time = redis.call("TIME")
local now = (time[1] - 1483228800) + (time[2] / 1000000)
redis.call("SET", KEYS[1], now + ARGV[1], "EX", math.ceil(ARGV[1]))
return ""
`)

var errInvalidReply = errors.New("redis sent an invalid reply to the limiter's script")

// parseReply sets the decisions of a batch from the reply of takeMany.
func parseReply(reply string, rule redis_rate.Limit, batch []*pending[bucketTake]) error {
	rest, more := reply, true
	for _, p := range batch {
		var number string
		number, rest, more = strings.Cut(rest, " ")
		micros, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %q", errInvalidReply, reply)
		}
		p.item.decision, p.done = parseDecision(micros, rule), true
	}
	if more {
		return fmt.Errorf("%w: more than %d decisions", errInvalidReply, len(batch))
	}
	return nil
}

// parseDecision makes a decision from one number of the reply, whose rounding to a microsecond must not reduce Remaining.
func parseDecision(micros int64, rule redis_rate.Limit) Decision {
	emissionInterval, burstOffset := gcraParameters(rule)
	if micros < 0 {
		reset := time.Duration(-1-micros) * time.Microsecond
		return Decision{Rule: rule, ResetAfter: reset, RetryAfter: max(0, reset+emissionInterval-burstOffset)}
	}
	reset := time.Duration(micros) * time.Microsecond
	return Decision{Allowed: true, Rule: rule, ResetAfter: reset, Remaining: int(max(0, burstOffset-reset+time.Microsecond) / emissionInterval)}
}
