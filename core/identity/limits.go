package identity

import (
	"time"

	"intents.internal/pkg/forwarded"
)

// Limits are how often a client may try. Each is the size of a token bucket, which refills at the same number per period.
type Limits struct {
	SignInPerIP           int // a minute, by any way of signing in
	SignInPerAccount      int // an hour, by password, from devices that have not signed in to the account
	SignInPerAccountAndIP int // an hour, by password, from one address; and from each device that has signed in
	SignUpPerIP           int // an hour
	KeysPerAccount        int // keys made, an hour
	KeysPerIP             int // keys made, an hour
	MailsPerAddress       int // asked for, an hour, to one recipient from one address; sent to it, mailNetworks times as many of a kind
	MailsPerIP            int // asked for, an hour, from one address
}

// MaxLimit is the maximum of each of the Limits, and 1 the minimum.
const MaxLimit = 1_000_000

// LimitedError rejects a client that tried too often.
type LimitedError struct {
	// RetryAfter is the time until the next attempt is admitted, if nobody else takes the token.
	RetryAfter time.Duration
}

func (e *LimitedError) Error() string {
	return "tried too often, the next try is free in " + e.RetryAfter.String()
}

// limits are the buckets of a Service's Limits.
type limits struct {
	signInPerIP, signInPerAccount, signInPerAccountAndIP, signInPerDevice, signInOfDevices limit
	signUpPerIP, keysPerAccount, keysPerIP, mailsPerAddress, mailsPerIP                    limit
	mailsOfKind, noticesOfAction, invitationsPerAccount, invitationsPerAddress             limit
	writesPerPerson, readsPerPerson, requestsPerNetwork                                    limit
}

// mailNetworks is how many networks can use up their limits of one recipient until no more mails of a kind are sent to it. It bounds
// what a mailbox gets from a client with many addresses.
const mailNetworks = 4

// noticesPerHour is how many notices of one action on one account a mailbox gets. It bounds what a program that rotates keys sends to
// their owners; the first ones of an intruder arrive, whatever else they do.
const noticesPerHour = 5

func newLimits(l *limiter, n Limits) limits {
	l.metrics.create(keyLimit)
	return limits{
		signInPerIP:           l.limit("sign-in-ip", n.SignInPerIP, time.Minute),
		signInPerAccount:      l.limit("sign-in-account", n.SignInPerAccount, time.Hour),
		signInPerAccountAndIP: l.limit("sign-in-account-ip", n.SignInPerAccountAndIP, time.Hour),
		signInPerDevice:       l.limit("sign-in-device", n.SignInPerAccountAndIP, time.Hour),
		signInOfDevices:       l.limit("sign-in-device-ip", n.SignInPerIP, time.Minute),
		signUpPerIP:           l.limit("sign-up-ip", n.SignUpPerIP, time.Hour),
		keysPerAccount:        l.limit("keys-account", n.KeysPerAccount, time.Hour),
		keysPerIP:             l.limit("keys-ip", n.KeysPerIP, time.Hour),
		mailsPerAddress:       l.limit("mails-address", n.MailsPerAddress, time.Hour),
		mailsPerIP:            l.limit("mails-ip", n.MailsPerIP, time.Hour),

		mailsOfKind:           l.limit("mails-kind", mailNetworks*n.MailsPerAddress, time.Hour),
		noticesOfAction:       l.limit("notices", noticesPerHour, time.Hour),
		invitationsPerAccount: l.limit("invitations-account", 50, 24*time.Hour),
		invitationsPerAddress: l.limit("invitations-address", 5, 24*time.Hour),

		writesPerPerson:    l.limit("session-writes", writesPerPerson, 10*time.Minute),
		readsPerPerson:     l.alone().limit("session-reads", readsPerPerson, time.Minute),
		requestsPerNetwork: l.alone().limit("session-none", requestsPerNetwork, time.Minute),
	}
}

// network returns the IPv4 address, or the /64 of the IPv6 address, because one subscriber has a whole /64.
func (c Client) network() string {
	address, ok := forwarded.ParseAddr(c.IP)
	if !ok {
		return "unknown"
	}
	if address.Is4() {
		return address.String()
	}
	prefix, _ := address.Prefix(64) // every IPv6 address has a /64
	return prefix.String()
}
