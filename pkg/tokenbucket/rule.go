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

// Spend takes a token from a bucket that is full at tat, its theoretical arrival time, without Redis. It returns the bucket's time
// after that, or how long it waits for a token.
func (r Rule) Spend(tat, now time.Time) (after time.Time, wait time.Duration) {
	if r.Rate == 0 {
		return tat, 0
	}
	emission, burst := r.Intervals()
	debt := r.Debt(tat, now)
	if late := debt + emission - burst; late > 0 {
		return now.Add(debt), max(late, time.Millisecond)
	}
	return now.Add(debt + emission), 0
}

// wait returns the time until a bucket that rejected with this number has a token: the time to refill the whole burst, less one
// emission interval.
func (r Rule) wait(micros int64) time.Duration {
	full := time.Duration(-1-micros) * time.Microsecond
	interval := r.Period.Seconds() / float64(r.Rate)
	return max(time.Millisecond, full-time.Duration(interval*float64(r.Burst-1)*float64(time.Second)))
}
