// Package quote defines what a swap or bridge brings, as providers offer it, before an intent is recorded. It is pure.
package quote

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// Kind is which amount of a quote was asked for.
type Kind string

// The two kinds.
const (
	// ExactInput fixes the source amount and asks for the destination's.
	ExactInput Kind = "exactInput"
	// ExactOutput fixes the destination amount and asks for the source's.
	ExactOutput Kind = "exactOutput"
)

// Quote is an offer of a provider, stored when it was answered. It makes one intent.
type Quote struct {
	// ID is a UUIDv7.
	ID          uuid.UUID
	AccountID   uuid.UUID
	Environment network.Environment
	// Provider is the name of the provider in CORE_QUOTES_FILE.
	Provider string
	Kind     Kind
	Type     transfer.Type
	// Source and Destination have both amounts.
	Source, Destination transfer.Leg
	// Deadline and Settlement are those of the intent that the quote makes.
	Deadline   time.Time
	Settlement transfer.Settlement
	// DefaultDeadline means that the quote was asked for without a deadline. One that is signed then has a shorter default of its own.
	DefaultDeadline bool
	Fees            []Fee
	// Duration is how long the provider expects the fill to take, 0 if it says nothing.
	Duration time.Duration
	// CreatedAt and ExpiresAt are by the database's clock. The quote can be used, and its intent's transaction is handed out, until
	// ExpiresAt.
	CreatedAt, ExpiresAt time.Time
	// TransferID is the intent that the quote made, zero for none.
	TransferID uuid.UUID
}

// Fee is part of the difference between the amounts of a quote. The fees of providers are their own statements.
type Fee struct {
	// Kind is the provider's word, or FeeTotal.
	Kind   string
	Token  caip.AccountID
	Amount *big.Int
	// Included means that the quote's amounts are after the fee.
	Included bool
}

// FeeTotal is the kind of a fee that is the whole difference between the two amounts of one asset.
const FeeTotal = "total"

// TotalFee returns the difference between the amounts; ok is false unless both tokens are one asset, which the registry gives one symbol and as
// many decimals, and no more arrives than is sent.
func (q *Quote) TotalFee(source, destination registry.Token) (fee Fee, ok bool) {
	if source.Symbol != destination.Symbol || source.Decimals != destination.Decimals {
		return fee, false
	}
	amount := new(big.Int).Sub(q.Source.Amount, q.Destination.Amount)
	return Fee{Kind: FeeTotal, Token: q.Source.Token, Amount: amount, Included: true}, amount.Sign() >= 0
}

// FailureCode is why a provider has no quote.
type FailureCode string

// The codes.
const (
	ProviderTimeout        FailureCode = "PROVIDER_TIMEOUT"
	ProviderUnavailable    FailureCode = "PROVIDER_UNAVAILABLE"
	ProviderRateLimited    FailureCode = "PROVIDER_RATE_LIMITED"
	ProviderRefused        FailureCode = "PROVIDER_REFUSED"
	ProviderInvalid        FailureCode = "PROVIDER_INVALID"
	ExactOutputUnsupported FailureCode = "EXACT_OUTPUT_UNSUPPORTED"
	NoQuote                FailureCode = "NO_QUOTE"
)

// FailureCodes are all codes.
var FailureCodes = []FailureCode{
	ProviderTimeout, ProviderUnavailable, ProviderRateLimited, ProviderRefused, ProviderInvalid, ExactOutputUnsupported, NoQuote,
}

// Answered reports whether the provider answered properly, with nothing or a refusal.
func (c FailureCode) Answered() bool {
	return c != ProviderTimeout && c != ProviderUnavailable && c != ProviderRateLimited
}

// Failure is a provider that has no quote.
type Failure struct {
	Provider string
	Code     FailureCode
}

// Sort puts the best quotes first: most output or, at the same output, least input; then the shorter duration, then the provider's name.
func Sort(quotes []Quote) {
	slices.SortStableFunc(quotes, func(a, b Quote) int {
		return cmp.Or(
			b.Destination.Amount.Cmp(a.Destination.Amount),
			a.Source.Amount.Cmp(b.Source.Amount),
			cmp.Compare(uint64(a.Duration-1), uint64(b.Duration-1)), //nolint:gosec // an unknown duration is the longest
			cmp.Compare(a.Provider, b.Provider),
		)
	})
}
