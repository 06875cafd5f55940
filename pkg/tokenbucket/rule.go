package tokenbucket

import "time"

// Rule is a limit: Burst requests, refilled at Rate per Period. A Rate of 0 is no limit.
type Rule struct {
	Rate, Burst int
	Period      time.Duration
}

// Per is the rule of n tokens at once, which refill in a period.
func Per(n int, period time.Duration) Rule { return Rule{Rate: n, Burst: n, Period: period} }

// Intervals returns the emission interval, which refills one token, and the time that refills the whole burst. Both are 0 for no
// limit.
func (r Rule) Intervals() (emission, burst time.Duration) {
	if r.Rate == 0 {
		return 0, 0
	}
	period, rate, size := r.Period.Nanoseconds(), int64(r.Rate), int64(r.Burst)
	// The product of period and size may overflow.
	return time.Duration(max(1, period/rate)), time.Duration(period/rate*size + period%rate*size/rate)
}

// Clamp returns the theoretical arrival time of a bucket under this rule: a bucket lacks at most its whole burst. It lacks more if it
// was charged under a rule with a longer period or a lower rate, or by a clock that was ahead. gcra.lua does the same in Redis.
func (r Rule) Clamp(tat, now time.Time) time.Time {
	if empty := now.Add(r.debt(tat, now)); tat.After(empty) {
		return empty
	}
	return tat
}

// debt returns the time that refills a bucket with this theoretical arrival time, at most that of the whole burst.
func (r Rule) debt(tat, now time.Time) time.Duration {
	_, burst := r.Intervals()
	return min(max(0, tat.Sub(now)), burst)
}

// left returns how many tokens a bucket with this debt has left, and the time until it has n of them, which must be at most the
// burst. Both are 0 for no limit.
func (r Rule) left(debt time.Duration, n int) (left int, wait time.Duration) {
	emission, burst := r.Intervals()
	if emission == 0 {
		return 0, 0
	}
	credit := burst - debt
	return int(max(0, credit) / emission), max(0, time.Duration(n)*emission-credit)
}

// Quota is what a bucket has for a request. It is zero for no limit.
type Quota struct {
	// Rule is the limit that was applied.
	Rule Rule
	// Remaining is how many more requests of one token would pass now.
	Remaining int
	// RetryAfter is the time until the bucket has the request's tokens, 0 if it has them.
	RetryAfter time.Duration
	// ResetAfter is the time until the bucket will be full.
	ResetAfter time.Duration
}

// Quota returns what a bucket with this theoretical arrival time has for a request of so many tokens, which must be at most the burst.
func (r Rule) Quota(tat time.Time, tokens int, now time.Time) Quota {
	if r.Rate == 0 {
		return Quota{}
	}
	q := Quota{Rule: r, ResetAfter: r.debt(tat, now)}
	q.Remaining, q.RetryAfter = r.left(q.ResetAfter, tokens)
	return q
}

// Spend takes tokens that the bucket has and returns its theoretical arrival time after that.
func (q *Quota) Spend(tokens int, now time.Time) time.Time {
	if q.Rule.Rate == 0 {
		return now
	}
	emission, _ := q.Rule.Intervals()
	q.Remaining -= tokens
	q.ResetAfter += time.Duration(tokens) * emission
	return now.Add(q.ResetAfter)
}

// ParseQuota parses one number of a Call's reply on a request of so many tokens, after it took them. Its rounding to a microsecond must
// not reduce Remaining, nor report tokens that the bucket has refused.
func (r Rule) ParseQuota(micros int64, tokens int) Quota {
	if r.Rate == 0 {
		return Quota{}
	}
	refused := micros < 0
	if refused {
		micros = -1 - micros
	}
	q := Quota{Rule: r, ResetAfter: time.Duration(micros) * time.Microsecond}
	left, wait := r.left(q.ResetAfter-time.Microsecond, tokens)
	q.Remaining = left
	if refused {
		q.Remaining, q.RetryAfter = min(left, tokens-1), wait+time.Microsecond
	}
	return q
}

// longestWait returns the time until each bucket has the one token that a call of one request asks of it, or 0 if it took them. The reply has
// the buckets' numbers, in the order of their rules.
func longestWait(reply []int64, rules ...Rule) (wait time.Duration) {
	for i, rule := range rules {
		if retry := rule.ParseQuota(reply[i], 1).RetryAfter; retry > 0 {
			wait = max(wait, retry, time.Millisecond)
		}
	}
	return wait
}
