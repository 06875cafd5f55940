package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Quotes asks what a swap or bridge brings.
type Quotes struct{ c *Client }

// CreateQuotes asks for quotes. One of the two amounts is given: the source's for an exact input, the destination's for an exact output.
type CreateQuotes struct {
	Source      SourceRequest      `json:"source"`
	Destination DestinationRequest `json:"destination"`
	Deadline    time.Time          `json:"deadline,omitzero"`
	// Providers are those to ask, by default all.
	Providers []string `json:"providers,omitempty"`
}

// QuoteList are the quotes, the best first, and the providers that gave none.
type QuoteList struct {
	Quotes   []Quote        `json:"quotes"`
	Failures []QuoteFailure `json:"failures"`
}

// Quote is what a swap or bridge brings or costs. It can be used once, by CreateTransfer.QuoteID, until it expires.
type Quote struct {
	ID               string       `json:"id"`
	Provider         string       `json:"provider"`
	Scheme           string       `json:"scheme"`
	Deployment       string       `json:"deployment"`
	Type             TransferType `json:"type"`
	Kind             QuoteKind    `json:"kind"`
	Source           Leg          `json:"source"`
	Destination      Leg          `json:"destination"`
	Deadline         time.Time    `json:"deadline"`
	Fees             []QuoteFee   `json:"fees"`
	EstimatedSeconds *int         `json:"estimatedSeconds"`
	CreatedAt        time.Time    `json:"createdAt"`
	ExpiresAt        time.Time    `json:"expiresAt"`
	// TransferID is the intent that was made of it, empty before.
	TransferID string `json:"transferId,omitempty"`
}

// QuoteKind is which amount is exact.
type QuoteKind string

// Kinds of quotes.
const (
	ExactInput  QuoteKind = "exactInput"
	ExactOutput QuoteKind = "exactOutput"
)

// QuoteFee is a fee as the provider states it. Included ones are part of the amounts already.
type QuoteFee struct {
	Kind     string `json:"kind"`
	Token    string `json:"token"`
	Amount   Amount `json:"amount"`
	Included bool   `json:"included"`
}

// QuoteFailure is why a provider gave no quote.
type QuoteFailure struct {
	Provider string           `json:"provider"`
	Code     QuoteFailureCode `json:"code"`
}

// QuoteFailureCode tells reasons apart.
type QuoteFailureCode string

// Reasons of a provider to give no quote.
const (
	ProviderTimeout        QuoteFailureCode = "PROVIDER_TIMEOUT"
	ProviderUnavailable    QuoteFailureCode = "PROVIDER_UNAVAILABLE"
	ProviderRateLimited    QuoteFailureCode = "PROVIDER_RATE_LIMITED"
	ProviderRefused        QuoteFailureCode = "PROVIDER_REFUSED"
	ProviderInvalid        QuoteFailureCode = "PROVIDER_INVALID"
	ExactOutputUnsupported QuoteFailureCode = "EXACT_OUTPUT_UNSUPPORTED"
	ProviderNoQuote        QuoteFailureCode = "NO_QUOTE"
)

// Create asks the providers, which takes up to three seconds. CodeNoQuote means that nobody offers the route now. It is tried once.
func (s *Quotes) Create(ctx context.Context, create CreateQuotes) (*QuoteList, error) {
	return call[QuoteList](ctx, s.c, request{method: http.MethodPost, path: "/v2/quotes", body: create})
}

// Get reads a quote, for a day after its end or, once it has made an intent, for 30 days.
func (s *Quotes) Get(ctx context.Context, id string) (*Quote, error) {
	return call[Quote](ctx, s.c, request{method: http.MethodGet, path: "/v2/quotes/" + url.PathEscape(id)})
}
