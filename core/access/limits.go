package access

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/go-redis/redis_rate/v10"
)

// Limits are how often a visitor may try. Each is the size of a bucket, which refills at the same number a period.
type Limits struct {
	SignInPerIP           int // a minute, by any way of signing in
	SignInPerAccount      int // an hour, by password, from devices that have not signed in to the account
	SignInPerAccountAndIP int // an hour, by password, from one address; and from each device that has signed in
	SignUpPerIP           int // an hour
	KeysPerAccount        int // keys made, an hour
	KeysPerIP             int // keys made, an hour
}

// DefaultLimits are generous to an office behind one address and mean to whoever guesses.
var DefaultLimits = Limits{
	SignInPerIP: 30, SignInPerAccount: 60, SignInPerAccountAndIP: 10, SignUpPerIP: 20, KeysPerAccount: 100, KeysPerIP: 300,
}

// MaxLimit is the highest that any of the Limits can be.
const MaxLimit = 1_000_000

// Validate reports limits that are not 1 to MaxLimit.
func (l Limits) Validate() error {
	for _, limit := range []int{l.SignInPerIP, l.SignInPerAccount, l.SignInPerAccountAndIP, l.SignUpPerIP, l.KeysPerAccount, l.KeysPerIP} {
		if limit < 1 || limit > MaxLimit {
			return fmt.Errorf("a limit must be 1 to %d, not %d", MaxLimit, limit)
		}
	}
	return nil
}

// LimitedError refuses a visitor who tried too often.
type LimitedError struct {
	// RetryAfter is when the next try will be let through, if nobody else takes it.
	RetryAfter time.Duration
}

func (e *LimitedError) Error() string {
	return "tried too often, the next try is free in " + e.RetryAfter.String()
}

// rule is one limit. Its name begins the names of its buckets.
type rule struct {
	name  string
	limit redis_rate.Limit
}

type rules struct {
	signInPerIP, signInPerAccount, signInPerAccountAndIP, signInPerDevice, signInOfDevices rule
	signUpPerIP, keysPerAccount, keysPerIP                                                 rule
}

func newRules(l Limits) rules {
	a := func(name string, n int, period time.Duration) rule {
		return rule{name, redis_rate.Limit{Rate: n, Burst: n, Period: period}}
	}
	return rules{
		signInPerIP:           a("sign-in-ip", l.SignInPerIP, time.Minute),
		signInPerAccount:      a("sign-in-account", l.SignInPerAccount, time.Hour),
		signInPerAccountAndIP: a("sign-in-account-ip", l.SignInPerAccountAndIP, time.Hour),
		signInPerDevice:       a("sign-in-device", l.SignInPerAccountAndIP, time.Hour),
		signInOfDevices:       a("sign-in-device-ip", l.SignInPerIP, time.Minute),
		signUpPerIP:           a("sign-up-ip", l.SignUpPerIP, time.Hour),
		keysPerAccount:        a("keys-account", l.KeysPerAccount, time.Hour),
		keysPerIP:             a("keys-ip", l.KeysPerIP, time.Hour),
	}
}

func (r rules) all() []rule {
	return []rule{
		r.signInPerIP, r.signInPerAccount, r.signInPerAccountAndIP, r.signInPerDevice, r.signInOfDevices,
		r.signUpPerIP, r.keysPerAccount, r.keysPerIP,
	}
}

// network is what an address is counted by: a version 6 address by its /64, which one subscriber has for itself.
func (v Visitor) network() string {
	address, err := netip.ParseAddr(v.IP)
	if err != nil {
		return "unknown"
	}
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	prefix, _ := address.Prefix(64) // a version 6 address has one
	return prefix.String()
}
