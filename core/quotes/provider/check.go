package provider

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"time"

	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// maxValidity is the longest time for which an offer may hold: prices move, and an end in milliseconds is thousands of years away.
const maxValidity = time.Hour

// MaxDuration bounds what is shown of a provider's estimate.
const MaxDuration = 7 * 24 * time.Hour

// dropReason is why an offer of a provider is not handed out, a label of its counter.
type dropReason string

// The reasons. With the first five the provider's answer is invalid; the others are offers that do not suit. An offer without a time is expired.
const (
	dropMalformed  dropReason = "malformed"
	dropOtherRoute dropReason = "other_route"
	dropAmount     dropReason = "amount"
	dropContract   dropReason = "contract"
	dropPartial    dropReason = "partial_fill"
	dropExpired    dropReason = "expired"
	dropFarEnd     dropReason = "far_end"
	dropExclusive  dropReason = "exclusive"
	dropDuplicate  dropReason = "duplicate"
	dropTooMany    dropReason = "too_many"
	dropOutlier    dropReason = "outlier"
)

var dropReasons = []dropReason{
	dropMalformed, dropOtherRoute, dropAmount, dropContract, dropPartial, dropExpired, dropFarEnd, dropExclusive, dropDuplicate, dropTooMany, dropOutlier,
}

// invalid reports whether the reason is a fault of the answer.
func (d dropReason) invalid() bool {
	return d == dropMalformed || d == dropOtherRoute || d == dropAmount || d == dropContract || d == dropPartial
}

// check returns the offer of a candidate, or why it is dropped: it must be what was asked for in every member.
func (r Request) check(c candidate, now time.Time) (Offer, dropReason) {
	if c.malformed != nil {
		return Offer{}, dropMalformed
	}
	source, sourceErr := parseAmount(c.source.amount)
	destination, destinationErr := parseAmount(c.destination.amount)
	if err := errors.Join(sourceErr, destinationErr); err != nil {
		return Offer{}, dropMalformed
	}
	if !c.source.is(r.Source) || !c.destination.is(r.Destination) {
		return Offer{}, dropOtherRoute
	}
	fixed, offered := source, destination
	if r.Kind == quote.ExactOutput {
		fixed, offered = destination, source
	}
	if fixed.Cmp(r.asked()) != 0 || offered.Sign() == 0 {
		return Offer{}, dropAmount
	}
	if c.order != nil {
		if reason := r.compare(*c.order, source, destination); reason != "" {
			return Offer{}, reason
		}
	}
	switch {
	case c.partialFill:
		return Offer{}, dropPartial
	case c.exclusive:
		return Offer{}, dropExclusive
	case c.validUntil > now.Add(maxValidity).Unix():
		return Offer{}, dropFarEnd
	}
	until := time.Unix(min(c.validUntil, r.LastUse.Unix()), 0).UTC()
	if until.Unix() < now.Add(r.MinValidity).Unix() {
		return Offer{}, dropExpired
	}
	return Offer{Amount: offered, ValidUntil: until, Duration: duration(c.eta)}, ""
}

func duration(seconds float64) time.Duration {
	if !(seconds > 0) || math.IsInf(seconds, 1) {
		return 0
	}
	return time.Duration(min(seconds, MaxDuration.Seconds())) * time.Second
}

var errAmount = errors.New("is no amount: decimal digits without leading zeros, below 2^256")

// parseAmount is strict: providers' amounts become those of orders.
func parseAmount(text string) (*big.Int, error) {
	if len(text) > 78 || !wire.IsAmount(text) {
		return nil, errAmount
	}
	amount, ok := new(big.Int).SetString(text, 10)
	if !ok || amount.BitLen() > 256 {
		return nil, errAmount
	}
	return amount, nil
}

// is reports whether the side is that of the request, but for its amount. Addresses may be in any spelling.
func (s side) is(l transfer.Leg) bool {
	return s.chain == l.Account.Chain.String() && sameAddress(s.account, l.Account.Address) && s.namesToken(l.Token)
}

func (s side) namesToken(id caip.AccountID) bool {
	return sameAddress(s.token, assetAddress(id)) || sameAddress(s.token, id.Address) // ERC-7528's native address
}

func sameAddress(a, b string) bool { return strings.EqualFold(a, b) }
