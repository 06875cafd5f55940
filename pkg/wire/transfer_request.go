package wire

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"intents.internal/pkg/caip"
)

const (
	// MaxTransferRequestBytes bounds the body of POST /v2/transfers; a longer one is rejected with PAYLOAD_TOO_LARGE.
	MaxTransferRequestBytes = 16 << 10
	// MaxReferenceLength is the maximum in characters.
	MaxReferenceLength = 128
)

// TransferRequest is a body of POST /v2/transfers that follows the grammar: ids are well formed, amounts are digits. Core checks
// the meaning, such as whether the chain is supported and the amount in range.
type TransferRequest struct {
	Source      Leg
	Destination Leg
	// Deadline is the zero time if the body has none.
	Deadline time.Time
	// Reference is the client's own name for the intent; may be empty.
	Reference string
	// QuoteID is the UUID of the quote that the intent is made from, in lower case, empty for none. With it Source and Destination may
	// both be missing.
	QuoteID string
	// Signing means that the user signs the intent instead of sending its transaction; empty for no.
	Signing SigningScheme
	// Submit means that the signed order is handed to the solver whose quote the intent is made from.
	Submit bool
	// Labels are the client's own pairs of key and value; may be empty.
	Labels Labels
}

// Leg is one side of a transfer.
type Leg struct {
	Account caip.AccountID
	// Token is the zero AccountID if the destination has none.
	Token caip.AccountID
	// Amount is in the token's smallest unit: decimal digits without leading zeros, empty if the destination has none.
	Amount string
}

// Chains returns the chains that the request names, in the order of the body's fields, each once.
func (r TransferRequest) Chains() []caip.ChainID {
	chains := make([]caip.ChainID, 0, 4)
	for _, id := range r.ids() {
		if id != (caip.AccountID{}) && !slices.Contains(chains, id.Chain) {
			chains = append(chains, id.Chain)
		}
	}
	return chains
}

// ids are the ids that name a chain, in the order of idPaths.
func (r TransferRequest) ids() [4]caip.AccountID {
	return [...]caip.AccountID{r.Source.Account, r.Source.Token, r.Destination.Account, r.Destination.Token}
}

var idPaths = [...]string{"/source/account", "/source/token", "/destination/account", "/destination/token"}

// PathOf returns the JSON Pointer of the first member that names a chain, empty if none does.
func (r TransferRequest) PathOf(chain caip.ChainID) string {
	for n, id := range r.ids() {
		if id.Chain == chain {
			return idPaths[n]
		}
	}
	return ""
}

// DecodeTransferRequest parses the body of POST /v2/transfers strictly: one JSON object in valid UTF-8, without duplicate names,
// unknown names, null, values of other types than string, or trailing data. It returns every issue, except that it stops at a
// JSON syntax error; the request is complete only if there are no issues.
func DecodeTransferRequest(body []byte) (TransferRequest, []Issue) {
	d := newDecoder(body)
	defer d.release()
	var r TransferRequest
	d.transfer(&r, d.quoteID)
	return r, d.finish()
}

// transfer parses the object of one intent; quoteID parses its quoteId.
func (d *decoder) transfer(r *TransferRequest, quoteID func(*string)) {
	seen, ok := d.members(requestFields, func(n int) {
		switch requestFields[n] {
		case "source":
			d.leg(&r.Source, requiredSourceFields)
		case "destination":
			d.leg(&r.Destination, requiredDestinationFields)
		case "deadline":
			d.deadline(&r.Deadline)
		case "reference":
			d.reference(&r.Reference)
		case "quoteId":
			quoteID(&r.QuoteID)
		case "signing":
			d.signing(&r.Signing)
		case "submit":
			d.submit(&r.Submit)
		case "labels":
			d.labels(&r.Labels)
		}
	})
	hasSource, hasDestination, hasQuote := seen[0], seen[1], seen[quoteIDField]
	if ok && (!hasQuote || hasSource || hasDestination) {
		d.require(requestFields[:requiredRequestFields], seen)
	}
	if ok && seen[submitField] && !seen[signingField] {
		d.issueOf("submit", "needs signing: an order is submitted with its user's signature")
	}
}

// The names of each object; the required ones are first.
var (
	requestFields = []string{"source", "destination", "deadline", "reference", "quoteId", "signing", "submit", "labels"}
	legFields     = []string{"account", "token", "amount"}
)

const (
	requiredRequestFields     = 2
	requiredSourceFields      = 3
	requiredDestinationFields = 1
)

// The indices of members in requestFields.
const (
	quoteIDField = 4
	signingField = 5
	submitField  = 6
)

func (d *decoder) leg(leg *Leg, required int) {
	d.object(legFields, required, func(n int) {
		switch legFields[n] {
		case "account":
			d.accountID(&leg.Account)
		case "token":
			d.accountID(&leg.Token)
		case "amount":
			d.amount(&leg.Amount)
		}
	})
}

// submit parses true: a request that submits nothing leaves the member out, so that one intent has one spelling.
func (d *decoder) submit(submit *bool) {
	if d.broken {
		return
	}
	if d.in.PeekKind() != 't' {
		d.skip("must be true, or left out")
		return
	}
	*submit = d.next()
}

func (d *decoder) accountID(id *caip.AccountID) {
	text, ok := d.text()
	if !ok {
		return
	}
	parsed, err := caip.ParseAccountID(text)
	if err != nil {
		d.issue(err.Error())
		return
	}
	*id = parsed
}

func (d *decoder) amount(amount *string) {
	text, ok := d.text()
	if !ok {
		return
	}
	if !IsAmount(text) {
		d.issue("must be a whole number of the token's smallest unit in decimal digits, without sign or leading zeros")
		return
	}
	*amount = text
}

// IsAmount reports whether a text is an amount by the grammar: decimal digits without leading zeros, of any number.
func IsAmount(text string) bool {
	if text == "" || (text[0] == '0' && text != "0") {
		return false
	}
	return strings.Trim(text, "0123456789") == ""
}

func (d *decoder) deadline(deadline *time.Time) {
	text, ok := d.text()
	if !ok {
		return
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		d.issue("must be an RFC 3339 time such as 2027-01-01T00:00:00Z")
		return
	}
	*deadline = parsed.UTC()
}

func (d *decoder) reference(reference *string) {
	text, ok := d.text()
	if !ok {
		return
	}
	if n := utf8.RuneCountInString(text); n < 1 || n > MaxReferenceLength {
		d.issue("must have 1 to 128 characters")
		return
	}
	*reference = text
}

func (d *decoder) quoteID(id *string) {
	text, ok := d.text()
	if !ok {
		return
	}
	if parsed, err := uuid.Parse(text); err != nil || parsed.String() != text {
		d.issue("must be the id of a quote: a UUID in lower case, such as 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b")
		return
	}
	*id = text
}
