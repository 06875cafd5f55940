package account

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"intents.internal/pkg/tokenbucket"
)

// accountShare is the account's default limit as a multiple of a key's.
const accountShare = 20

var (
	// DefaultLimit is a key's limit: 50 requests a minute, a bucket of 50 that refills continuously.
	DefaultLimit = Limit{Requests: 50, Period: time.Minute}
	// DefaultAccountLimit is the total limit of an account's keys in one environment.
	DefaultAccountLimit = Limit{Requests: accountShare * DefaultLimit.Requests, Period: DefaultLimit.Period}
)

// The maximum limit of an account.
const (
	MaxLimitRequests = 1_000_000_000
	MaxLimitPeriod   = 24 * time.Hour
)

// Limit is a token bucket of Requests that refills at Requests per Period.
type Limit struct {
	Requests int
	// Period is a whole number of seconds.
	Period time.Duration
}

// ParseLimit parses a limit such as 1000/60s.
func ParseLimit(text string) (Limit, error) {
	before, after, _ := strings.Cut(text, "/")
	requests, err := strconv.Atoi(before)
	period, periodErr := time.ParseDuration(after)
	if err != nil || periodErr != nil || requests < 1 || requests > MaxLimitRequests ||
		period < time.Second || period > MaxLimitPeriod || period%time.Second != 0 {
		return Limit{}, &InvalidError{Field: "limit", Message: fmt.Sprintf(
			"must be requests/period such as 1000/60s: 1 to %d requests in 1s to %s, in whole seconds", MaxLimitRequests, MaxLimitPeriod)}
	}
	return Limit{Requests: requests, Period: period}, nil
}

// Rule is the limit in the terms of token buckets.
func (l Limit) Rule() tokenbucket.Rule {
	return tokenbucket.Per(l.Requests, l.Period)
}

func (l Limit) String() string { return fmt.Sprintf("%d/%ds", l.Requests, int(l.Period/time.Second)) }
