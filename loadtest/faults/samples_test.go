package faults_test

import (
	"math"
	"slices"
	"testing"
	"time"
)

// samples are some of a load's.
type samples []sample

func (s samples) filter(keep func(sample) bool) (some samples) {
	for _, one := range s {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

// between are those that were due from one time until another.
func (s samples) between(from, until time.Time) samples {
	return s.filter(func(one sample) bool { return !one.due.Before(from) && one.due.Before(until) })
}

// of are those of one stream.
func (s samples) of(stream int) samples {
	return s.filter(func(one sample) bool { return one.stream == stream })
}

// errors are those without an answer, and with one of 500 and more.
func (s samples) errors() samples {
	return s.filter(func(one sample) bool { return one.status == 0 || one.status >= 500 })
}

// admitted are those that were let through.
func (s samples) admitted() samples {
	return s.filter(func(one sample) bool { return one.status > 0 && one.status < 400 })
}

// statuses counts answers by status.
func (s samples) statuses() map[int]int {
	counts := map[int]int{}
	for _, one := range s {
		counts[one.status]++
	}
	return counts
}

// quantile is the time within which this share of them was answered.
func (s samples) quantile(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	times := make([]time.Duration, len(s))
	for n, one := range s {
		times[n] = one.took
	}
	slices.Sort(times)
	return times[int(math.Ceil(share*float64(len(times))))-1]
}

func (s samples) p99() time.Duration { return s.quantile(0.99) }

// overAdmission is how many requests of one key were let through beyond a full bucket and what came back to it meanwhile,
// for the key that had the most.
func (s samples) overAdmission() (worst int) {
	byKey := map[string]samples{}
	for _, one := range s {
		byKey[one.key] = append(byKey[one.key], one)
	}
	for _, some := range byKey {
		worst = max(worst, len(some.admitted())-some.allowance())
	}
	return worst
}

// allowance is how many requests of one key the limit lets through in the time that these took.
func (s samples) allowance() int { return burst + s.refill() }

// refill is how many requests came back to a bucket in the time that these took.
func (s samples) refill() int {
	if len(s) == 0 {
		return 0
	}
	first, last := s[0].due, s[0].due
	for _, one := range s {
		if one.due.Before(first) {
			first = one.due
		}
		if end := one.due.Add(one.took); end.After(last) {
			last = end
		}
	}
	return int(last.Sub(first) / token)
}

// mustBeSound wants that no answer was one that no client may see, and that there is one to every request.
func (s samples) mustBeSound(tb testing.TB) {
	tb.Helper()
	told := 0
	for _, one := range s {
		if one.fault != "" && told < 5 {
			told++
			tb.Errorf("a request of stream %d to gateway %d: %d %s", one.stream, one.gateway, one.status, one.fault)
		}
	}
}

// mustAnswerAll wants that nobody had an error, and that the crowd was never refused.
func (s samples) mustAnswerAll(tb testing.TB) {
	tb.Helper()
	if failed := s.errors(); len(failed) > 0 || len(s) == 0 {
		tb.Errorf("%d of %d requests failed: %v", len(failed), len(s), failed.statuses())
	}
	if statuses := s.of(crowd).statuses(); statuses[200] != len(s.of(crowd)) {
		tb.Errorf("the crowd, which stays below its limits, was answered %v", statuses)
	}
}
