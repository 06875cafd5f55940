package faults_test

import (
	"fmt"
	"testing"
	"time"
)

// attempts are some of a workload's.
type attempts []attempt

func (s attempts) filter(keep func(attempt) bool) (some attempts) {
	for _, one := range s {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

// from are those that began at that time or later.
func (s attempts) from(moment time.Time) attempts {
	return s.filter(func(one attempt) bool { return !one.began.Before(moment) })
}

// hitBy are those that were under way at that moment or began later.
func (s attempts) hitBy(moment time.Time) attempts {
	return s.filter(func(one attempt) bool { return one.began.Add(one.took).After(moment) })
}

func (s attempts) failed() attempts { return s.filter(attempt.failed) }

func (s attempts) of(k kind) attempts {
	return s.filter(func(one attempt) bool { return one.kind == k })
}

// slowest is how long the longest took.
func (s attempts) slowest() (most time.Duration) {
	for _, one := range s {
		most = max(most, one.took)
	}
	return most
}

// p99 is the time within which 99 of 100 were answered.
func (s attempts) p99() time.Duration {
	all := make(samples, len(s))
	for n, one := range s {
		all[n].took = one.took
	}
	return all.p99()
}

// lastFailure is when the last one failed; zero if none did.
func (s attempts) lastFailure() (last time.Time) {
	for _, one := range s.failed() {
		if end := one.began.Add(one.took); end.After(last) {
			last = end
		}
	}
	return last
}

// String counts them by kind and status.
func (s attempts) String() string {
	counts := map[string]int{}
	for _, one := range s {
		counts[fmt.Sprintf("%s %d", one.kind, one.status)]++
	}
	return fmt.Sprint(counts)
}

// mustBeSound wants that no answer was one that no client may see.
func (s attempts) mustBeSound(tb testing.TB) {
	tb.Helper()
	told := 0
	for _, one := range s {
		if one.status > 0 && one.fault != "" && told < 5 {
			told++
			tb.Errorf("a %s at gateway %d: %s", one.kind, one.gateway, one.fault)
		}
	}
}

// mustBeUnavailable wants status 503 of every one. Times in its report count from base.
func (s attempts) mustBeUnavailable(tb testing.TB, base time.Time) {
	tb.Helper()
	others := s.filter(func(one attempt) bool { return one.status != 503 })
	if len(others) > 0 {
		tb.Errorf("%d of %d failed requests got another status than 503: %s%s", len(others), len(s), others, others.first(5, base))
	}
}

// first tells some of them.
func (s attempts) first(count int, base time.Time) (text string) {
	for _, one := range s[:min(len(s), count)] {
		text += fmt.Sprintf("\n\t%s at gateway %d, %s after the fault, for %s: %d %s", one.kind, one.gateway, one.began.Sub(base), one.took, one.status, one.fault)
	}
	return text
}

// mustAllSucceed wants 200 or 201 of every request, and that clients were told of every intent that is stored.
func (s attempts) mustAllSucceed(tb testing.TB, untold int, began time.Time) {
	tb.Helper()
	failed := s.filter(func(one attempt) bool { return one.status != 200 && one.status != 201 })
	if len(failed) > 0 || untold > 0 {
		tb.Errorf("%d of %d requests failed, %d intents are stored that nobody was told of: %s%s", len(failed), len(s), untold, failed, failed.first(5, began))
	}
}
