// Package provider asks solvers and aggregators what a swap or bridge brings: services that speak the Open Intents Framework's quote API, and
// LI.FI's.
//
// It owns the calls, their bounds and the checks of answers. Only two amounts and a time are taken from an answer: contracts and calldata of
// a provider are compared with our own and never handed out.
package provider

import (
	"math/big"
	"time"

	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
)

// Request is a swap or bridge of which one amount is asked for.
type Request struct {
	Kind quote.Kind
	// Source and Destination are the sides; the amount that is asked for is nil.
	Source, Destination transfer.Leg
	// Deadline is that of the order that the quote makes. No offer holds longer than until LastUse, and one that holds for less than MinValidity is
	// none.
	Deadline, LastUse time.Time
	MinValidity       time.Duration
	// Settlement has the contracts of that order.
	Settlement transfer.Settlement
	// MinValidUntil is until when an offer should hold.
	MinValidUntil time.Time
}

// asked is the amount that the request fixes.
func (r Request) asked() *big.Int {
	if r.Kind == quote.ExactInput {
		return r.Source.Amount
	}
	return r.Destination.Amount
}

// Offer is one quote of a provider.
type Offer struct {
	// Amount is of the side that was asked for.
	Amount     *big.Int
	ValidUntil time.Time
	// Duration is how long the fill is expected to take, 0 for unknown.
	Duration time.Duration
}

// Error is why a provider has no offer. The code is for clients, the cause for logs: it contains nothing of the provider's headers and of its
// answer, and of its URL only the host.
type Error struct {
	Code quote.FailureCode
	// RetryAfter is when the provider may be asked again, 0 if unknown.
	RetryAfter time.Duration
	Cause      error
	// abandoned means that the caller's context ended.
	abandoned bool
	// overRate means that the account has made its requests of the minute.
	overRate bool
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Cause.Error() }

func (e *Error) Unwrap() error { return e.Cause }

// dialect is the form of a provider's requests and answers.
type dialect interface {
	// path is appended to the provider's URL.
	path() string
	// encode returns the body of a request.
	encode(r Request) ([]byte, error)
	// decode reads the body of an answer with status 200. It returns the offers as the provider describes them; an error means that the body
	// is malformed as a whole.
	decode(body []byte) ([]candidate, error)
	// refusal returns the code for a status from 400 to 499 other than 429.
	refusal(r Request, body []byte) quote.FailureCode
}

// candidate is an offer before it is checked.
type candidate struct {
	// id is the provider's own, empty for none.
	id                  string
	source, destination side
	validUntil          int64 // seconds since 1970
	eta                 float64
	// order is what the provider would fill, nil if it shows none.
	order *offeredOrder
	// exclusive means that one solver alone may fill the order for a while.
	exclusive bool
	// partialFill means that the order may be filled in part.
	partialFill bool
	// malformed is why the candidate cannot be read, nil if it can.
	malformed error
}

// side is an account, its token and an amount, as the provider repeats them.
type side struct {
	chain, account, token string
	amount                string
}
