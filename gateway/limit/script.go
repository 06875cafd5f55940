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

// bucketPrefix is what redis_rate puts before a bucket's name.
const bucketPrefix = "rate:"

// takeMany takes one request from each of many buckets under one rule. It keeps redis_rate's keys, state and arithmetic,
// so that both read each other's buckets and decide alike; only the clock is read once for the whole batch. A bucket that was
// written under a later clock counts as empty, where redis_rate would refuse until that time comes.
//
// The reply is a number for each bucket, in order and parted by spaces: the microseconds until it is full again, and
// from -1 down where the request is refused. All else of a decision follows from these and the rule.
var takeMany = redis.NewScript(`
local burst, rate, period = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local interval = period / rate
local size = interval * burst
-- Seconds since 2017, as redis_rate counts them: a double holds them to the microsecond until 2048.
local time = redis.call("TIME")
local now = (time[1] - 1483228800) + (time[2] / 1000000)

local full = redis.call("MGET", unpack(KEYS))
local moved = {}
local reply = {}
for i, key in ipairs(KEYS) do
  local before = math.max(tonumber(moved[key] or full[i] or now), now)
  if before > now + size then
    before = now + size
    redis.call("SET", key, before, "EX", math.ceil(size))
    moved[key] = before
  end
  local after = before + interval
  if now - (after - size) < 0 then
    reply[i] = string.format("%.0f", -1 - (before - now) * 1000000)
  else
    if after > now then
      redis.call("SET", key, after, "EX", math.ceil(after - now))
      moved[key] = after
    end
    reply[i] = string.format("%.0f", (after - now) * 1000000)
  end
end
return table.concat(reply, " ")
`)

// empty makes a bucket empty under a rule whose bucket is ARGV[1] seconds long.
var empty = redis.NewScript(`
local time = redis.call("TIME")
local now = (time[1] - 1483228800) + (time[2] / 1000000)
redis.call("SET", KEYS[1], now + ARGV[1], "EX", math.ceil(ARGV[1]))
return ""
`)

var errReply = errors.New("redis answered a batch in no form of ours")

// readReply puts the decisions that the reply of takeMany holds into the requests it was asked for.
func readReply(reply string, rule redis_rate.Limit, batch []*request) error {
	rest, more := reply, true
	for _, r := range batch {
		var number string
		number, rest, more = strings.Cut(rest, " ")
		micros, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %q", errReply, reply)
		}
		r.decision, r.decided = decisionOf(micros, rule), true
	}
	if more {
		return fmt.Errorf("%w: more than %d decisions", errReply, len(batch))
	}
	return nil
}

// decisionOf reads one number of the reply. It was rounded to a microsecond, which must not cost a request of what is left.
func decisionOf(micros int64, rule redis_rate.Limit) Decision {
	interval, size := dimensions(rule)
	if micros < 0 {
		reset := time.Duration(-1-micros) * time.Microsecond
		return Decision{Rule: rule, ResetAfter: reset, RetryAfter: max(0, reset+interval-size)}
	}
	reset := time.Duration(micros) * time.Microsecond
	return Decision{Allowed: true, Rule: rule, ResetAfter: reset, Remaining: int(max(0, size-reset+time.Microsecond) / interval)}
}
