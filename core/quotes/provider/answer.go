package provider

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/outbound"
	"intents.internal/core/quotes/quote"
)

// maxOffers bounds the offers that are taken of one answer.
const maxOffers = 20

var (
	errAnswer  = errors.New(`the body of the answer is no JSON object with a list "quotes"`)
	errInvalid = errors.New("no quote of the answer is what was asked for; intents_core_quote_dropped_total has the reasons")
	errNone    = errors.New("the answer has no quote that can be used")
)

// maxQuotes bounds the quotes that are read of an answer. An aggregator asks some dozens of solvers, each of which may offer several.
const maxQuotes = 1000

// decodeQuotes reads an answer's quotes one by one, so that one that is malformed leaves the others of an aggregator. The error quotes nothing
// of the body.
func decodeQuotes[Q any](body []byte, candidateOf func(Q) (candidate, error)) ([]candidate, error) {
	var all []candidate
	var answer struct {
		Quotes *quoteList `json:"quotes"`
	}
	read := json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, _ *quoteList) error {
		return outbound.DecodeList(decoder, maxQuotes, func() error {
			text, err := decoder.ReadValue()
			if err != nil {
				return err
			}
			var q Q
			var c candidate
			if err = json.Unmarshal(text, &q); err == nil {
				c, err = candidateOf(q)
			}
			c.malformed = err
			all = append(all, c)
			return nil
		})
	})
	err := json.Unmarshal(body, &answer, json.WithUnmarshalers(read))
	switch {
	case errors.Is(err, outbound.ErrTooManyElements):
		return all, nil
	case err != nil || answer.Quotes == nil:
		return nil, errAnswer
	}
	return all, nil
}

// quoteList is the list of quotes, which decodeQuotes reads.
type quoteList struct{}

// maxSides bounds the inputs and outputs that are read of a quote, which must have one of each.
const maxSides = 4

// sides are the inputs or outputs of a quote.
type sides[S any] []S

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *sides[S]) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	*s = nil
	return outbound.DecodeList(decoder, maxSides, func() error {
		var side S
		err := json.UnmarshalDecode(decoder, &side)
		*s = append(*s, side)
		return err
	})
}

// selectOffers returns the best offers of an answer, at most maxOffers, the best first. drop is told why others are left out.
func (r Request) selectOffers(candidates []candidate, now time.Time, drop func(dropReason)) ([]Offer, *Error) {
	type named struct {
		Offer
		id string
	}
	var all []named
	invalid := len(candidates) > 0
	for _, c := range candidates {
		offer, reason := r.check(c, now)
		invalid = invalid && reason.invalid()
		if reason != "" {
			drop(reason)
			continue
		}
		all = append(all, named{offer, c.id})
	}
	switch {
	case invalid:
		return nil, &Error{Code: quote.ProviderInvalid, Cause: errInvalid}
	case len(all) == 0:
		return nil, &Error{Code: quote.NoQuote, Cause: errNone}
	}
	slices.SortStableFunc(all, func(a, b named) int { return r.compareOffers(a.Offer, b.Offer) })
	var offers []Offer
	ids := map[string]bool{}
	for _, o := range all { // the best of an id comes first
		switch {
		case ids[o.id] || len(offers) > 0 && r.compareOffers(offers[len(offers)-1], o.Offer) == 0:
			drop(dropDuplicate)
		case len(offers) == maxOffers:
			drop(dropTooMany)
		default:
			offers, ids[o.id] = append(offers, o.Offer), o.id != ""
		}
	}
	return offers, nil
}

// compareOffers puts the most output or the least input first, then what holds longer, then what is filled sooner.
func (r Request) compareOffers(a, b Offer) int {
	better := b.Amount.Cmp(a.Amount)
	if r.Kind == quote.ExactOutput {
		better = -better
	}
	return cmp.Or(better, b.ValidUntil.Compare(a.ValidUntil), cmp.Compare(a.Duration, b.Duration))
}
