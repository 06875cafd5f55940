package wire

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"intents.internal/pkg/caip"
)

const (
	// MaxQuoteRequestBytes bounds the body of POST /v2/quotes; a longer one is rejected with PAYLOAD_TOO_LARGE.
	MaxQuoteRequestBytes = 16 << 10
	// MaxQuoteProviders is how many providers a request may name.
	MaxQuoteProviders = 16
	// MaxQuoteWait is how long core waits for providers.
	MaxQuoteWait = 3 * time.Second
)

// QuoteRequest is a body of POST /v2/quotes that follows the grammar. It should have one of the two amounts.
type QuoteRequest struct {
	Source      Leg
	Destination Leg
	// Deadline is the zero time if the body has none.
	Deadline time.Time
	// Providers are the names of the providers to ask, none for all.
	Providers []string
}

// Chains returns the chains that the request names, in the order of the body's fields, each once.
func (r QuoteRequest) Chains() []caip.ChainID {
	return TransferRequest{Source: r.Source, Destination: r.Destination}.Chains()
}

// CheckAmounts reports whether the request has exactly one of the two amounts. If not, refusal is the body of the 400.
func (r QuoteRequest) CheckAmounts() (refusal Error, ok bool) {
	switch hasSource, hasDestination := r.Source.Amount != "", r.Destination.Amount != ""; {
	case hasSource && hasDestination:
		return Error{Code: AmountsConflict, Message: "The request has both amounts. Leave out destination.amount to quote what source.amount " +
			"brings, or source.amount to quote what destination.amount costs."}, false
	case !hasSource && !hasDestination:
		return Error{Code: AmountRequired, Message: "The request has no amount. Give source.amount to quote what it brings, or " +
			"destination.amount to quote what it costs."}, false
	default:
		return Error{}, true
	}
}

// DecodeQuoteRequest parses the body of POST /v2/quotes as strictly as DecodeTransferRequest. Either amount may be missing.
func DecodeQuoteRequest(body []byte) (QuoteRequest, []Issue) {
	d := newDecoder(body)
	defer d.release()
	var r QuoteRequest
	d.object(quoteFields, requiredRequestFields, func(n int) {
		switch quoteFields[n] {
		case "source":
			d.leg(&r.Source, requiredQuoteSourceFields)
		case "destination":
			d.leg(&r.Destination, requiredDestinationFields)
		case "deadline":
			d.deadline(&r.Deadline)
		case "providers":
			d.providers(&r.Providers)
		}
	})
	return r, d.finish()
}

var (
	// quoteFields has the required names first.
	quoteFields  = []string{"source", "destination", "deadline", "providers"}
	providerName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
)

// requiredQuoteSourceFields are those of legFields without the amount.
const requiredQuoteSourceFields = 2

func (d *decoder) providers(names *[]string) {
	count, ok := d.array(MaxQuoteProviders, func() {
		name, ok := d.text()
		switch {
		case !ok:
		case !providerName.MatchString(name):
			d.issue("must have 1 to 32 lower-case letters, digits and hyphens")
		case slices.Contains(*names, name):
			d.issue("is given twice")
		default:
			*names = append(*names, name)
		}
	})
	if ok && (count < 1 || count > MaxQuoteProviders) {
		d.issue(fmt.Sprintf("must have 1 to %d names", MaxQuoteProviders))
	}
}
