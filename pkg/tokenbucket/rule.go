package tokenbucket

import "time"

// Rule is a limit: Burst requests, refilled at Rate per Period. A Rate of 0 is no limit.
type Rule struct {
	Rate, Burst int
	Period      time.Duration
}

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
	if empty := now.Add(r.Debt(tat, now)); tat.After(empty) {
		return empty
	}
	return tat
}

// Debt returns the time that refills a bucket with this theoretical arrival time, at most that of the whole burst.
func (r Rule) Debt(tat, now time.Time) time.Duration {
	_, burst := r.Intervals()
	return min(max(0, tat.Sub(now)), burst)
}

// Left returns how many tokens a bucket with this debt has left, and the time until it has n of them, which must be at most the
// burst. Both are 0 for no limit.
func (r Rule) Left(debt time.Duration, n int) (left int, wait time.Duration) {
	emission, burst := r.Intervals()
	if emission == 0 {
		return 0, 0
	}
	credit := burst - debt
	return int(max(0, credit) / emission), max(0, time.Duration(n)*emission-credit)
}

// Spend takes a token from a bucket that is full at tat, its theoretical arrival time, without Redis. It returns the bucket's time
// after that, or how long it waits for a token.
func (r Rule) Spend(tat, now time.Time) (after time.Time, wait time.Duration) {
	if r.Rate == 0 {
		return tat, 0
	}
	debt := r.Debt(tat, now)
	if _, wait = r.Left(debt, 1); wait > 0 {
		return now.Add(debt), max(wait, time.Millisecond)
	}
	emission, _ := r.Intervals()
	return now.Add(debt + emission), 0
}

// wait returns the time until a bucket that rejected a request of one token with this number has it.
func (r Rule) wait(micros int64) time.Duration {
	_, wait := r.Left(time.Duration(-1-micros)*time.Microsecond, 1)
	return max(time.Millisecond, wait)
}
