package provider

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/quotes/quote"
)

// maxOffers bounds the offers that are taken of one answer.
const maxOffers = 20

var (
	errAnswer  = errors.New(`the body of the answer is no JSON object with a list "quotes"`)
	errInvalid = errors.New("no quote of the answer is what was asked for; intents_core_quote_dropped_total has the reasons")
	errNone    = errors.New("the answer has no quote that can be used")
)

// decodeQuotes reads an answer's quotes one by one, so that one that is malformed leaves the others of an aggregator. The error quotes nothing
// of the body.
func decodeQuotes[Q any](body []byte, candidateOf func(Q) (candidate, error)) ([]candidate, error) {
	var answer struct {
		Quotes *[]jsontext.Value `json:"quotes"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Quotes == nil {
		return nil, errAnswer
	}
	all := make([]candidate, len(*answer.Quotes))
	for n, text := range *answer.Quotes {
		var q Q
		err := json.Unmarshal(text, &q)
		if err == nil {
			all[n], err = candidateOf(q)
		}
		all[n].malformed = err
	}
	return all, nil
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
