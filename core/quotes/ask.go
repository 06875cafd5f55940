package quotes

import (
	"cmp"
	"context"
	"errors"
	"math/big"
	"slices"
	"sync"
	"time"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

const (
	// wantedValidity is how long an offer should hold.
	wantedValidity = time.Minute
	// maxQuotes bounds the quotes of one answer.
	maxQuotes = 100
	// defaultRetryAfter is when to ask again where no provider names a time.
	defaultRetryAfter = 5 * time.Second
)

var (
	// ErrNotConfigured is returned where no provider is configured in the key's environment.
	ErrNotConfigured = errors.New("no provider of quotes is configured in this environment")
	// ErrRouteUnsupported is returned where no provider serves a deployment that executes the route.
	ErrRouteUnsupported = errors.New("no provider serves a deployment that executes this route")
)

// UnknownProviderError is returned for a name that no provider of the key's environment has.
type UnknownProviderError struct{ Name string }

func (e *UnknownProviderError) Error() string { return "there is no provider " + e.Name }

// NoQuoteError is returned where a provider answered properly and none has a quote.
type NoQuoteError struct{ Failures []quote.Failure }

func (e *NoQuoteError) Error() string { return "no provider has a quote" }

// UnavailableError is returned where no provider answered.
type UnavailableError struct {
	Failures   []quote.Failure
	RetryAfter time.Duration
}

func (e *UnavailableError) Error() string { return "no provider of quotes answers" }

// Answer is what providers offer.
type Answer struct {
	// Quotes are stored, the best first.
	Quotes   []quote.Quote
	Failures []quote.Failure
}

// Ask asks the providers of the caller's environment what a swap or bridge brings, all at once, and stores their quotes. It returns an
// *intents.EnvironmentError, a *screening.NotAllowedError or a *transfer.Rejection as a POST of the intent would, or one of the errors above. The grant is that of the
// caller to the account.
func (s *Service) Ask(ctx context.Context, grant access.Grant, by transfer.Caller, request wire.QuoteRequest) (Answer, error) {
	known, now := s.Registry.Current(), s.Store.Now().Truncate(time.Microsecond) // as it is stored
	sides := wire.TransferRequest{Source: request.Source, Destination: request.Destination, Deadline: request.Deadline}
	if err := s.checkNames(by, request.Providers); err != nil {
		return Answer{}, err
	}
	if err := intents.CheckEnvironment(sides, known, by.Environment); err != nil {
		return Answer{}, err
	}
	if err := s.screen().Check(screening.AtQuote, by.Environment, sides.Source.Account, sides.Destination.Account); err != nil {
		about := screening.About{Stage: screening.AtQuote, AccountID: by.AccountID, KeyID: by.KeyID, Environment: by.Environment}
		return Answer{}, s.screen().Refused(ctx, about, err)
	}
	route, err := transfer.NewRoute(now, sides, known)
	if err != nil {
		return Answer{}, err
	}
	asked, err := s.providersOf(route, by, request.Providers, now)
	if err != nil {
		return Answer{}, err
	}
	answer, retryAfter := s.askAll(ctx, by, route, asked, known, now)
	switch {
	case len(answer.Quotes) > 0:
		return answer, s.Store.Insert(ctx, grant, answer.Quotes)
	case slices.ContainsFunc(answer.Failures, func(f quote.Failure) bool { return f.Code.Answered() }):
		return Answer{}, &NoQuoteError{answer.Failures}
	default:
		return Answer{}, &UnavailableError{answer.Failures, retryAfter}
	}
}

// question is what one provider is asked.
type question struct {
	*provider.Provider
	provider.Request
}

// checkNames returns an *UnknownProviderError for a name that no provider has.
func (s *Service) checkNames(by transfer.Caller, names []string) error {
	here := s.Providers.In(by.Environment)
	for _, name := range names {
		if len(here) > 0 && !slices.ContainsFunc(here, func(p *provider.Provider) bool { return p.Name == name }) {
			return &UnknownProviderError{name}
		}
	}
	return nil
}

// providersOf returns the providers that serve the route, of those that the request names.
func (s *Service) providersOf(route *transfer.Route, by transfer.Caller, names []string, now time.Time) (asked []question, err error) {
	here := s.Providers.In(by.Environment)
	if len(here) == 0 {
		return nil, ErrNotConfigured
	}
	for _, p := range here {
		n := slices.IndexFunc(route.Settlements, func(t transfer.Settlement) bool { return t.Deployment == p.Deployment })
		if n >= 0 && (len(names) == 0 || slices.Contains(names, p.Name)) {
			asked = append(asked, question{p, requestOf(route, route.Settlements[n], now)})
		}
	}
	if len(asked) == 0 {
		return nil, ErrRouteUnsupported
	}
	return asked, nil
}

// askAll asks the providers at once. retryAfter is the earliest time at which one of those that failed may answer.
func (s *Service) askAll(
	ctx context.Context, by transfer.Caller, route *transfer.Route, asked []question, known *registry.Snapshot, now time.Time,
) (answer Answer, retryAfter time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wire.MaxQuoteWait)
	defer cancel()
	offers, failures := make([][]provider.Offer, len(asked)), make([]*provider.Error, len(asked))
	answered := now.Add(wire.MaxQuoteWait) // the client has the quotes then at the latest
	var asking sync.WaitGroup
	for n, q := range asked {
		asking.Go(func() { offers[n], failures[n] = q.Ask(ctx, by.AccountID, q.Request, answered) })
	}
	asking.Wait()
	s.dropOutliers(route, asked, offers, failures, known, now)
	for n, q := range asked {
		if failure := failures[n]; failure != nil {
			answer.Failures = append(answer.Failures, quote.Failure{Provider: q.Name, Code: failure.Code})
			if wait := cmp.Or(failure.RetryAfter, defaultRetryAfter); retryAfter == 0 || wait < retryAfter {
				retryAfter = wait
			}
		}
		for _, offer := range offers[n] {
			answer.Quotes = append(answer.Quotes, newQuote(by, route, q, offer, known, now))
		}
	}
	quote.Sort(answer.Quotes)
	answer.Quotes = answer.Quotes[:min(len(answer.Quotes), maxQuotes)]
	return answer, retryAfter
}

// dropOutliers removes offers that are too far from others to be meant. A provider that is left with none has no quote.
func (s *Service) dropOutliers(
	route *transfer.Route, asked []question, offers [][]provider.Offer, failures []*provider.Error, known *registry.Snapshot, now time.Time,
) {
	fixed := route.Source.Amount
	if fixed == nil {
		fixed = route.Destination.Amount
	}
	key := priceKey{route.Source.Token, route.Destination.Token, asked[0].Kind, len(fixed.String())}
	offered := make([][]*big.Rat, len(asked))
	for n, q := range asked {
		for _, offer := range offers[n] {
			offered[n] = append(offered[n], perInput(q.Request, offer))
		}
	}
	source, _ := known.Token(route.Source.Token)
	destination, _ := known.Token(route.Destination.Token)
	for n, far := range s.prices.outliers(key, source, destination, offered, now) {
		var kept []provider.Offer
		for m, offer := range offers[n] {
			if !far[m] {
				kept = append(kept, offer)
			}
		}
		if dropped := len(offers[n]) - len(kept); dropped > 0 {
			asked[n].DropOutliers(dropped)
			if offers[n] = kept; len(kept) == 0 {
				failures[n] = &provider.Error{Code: quote.NoQuote, Cause: errOutliers}
			}
		}
	}
}

var errOutliers = errors.New("the offers are too far from others")

func requestOf(route *transfer.Route, settlement transfer.Settlement, now time.Time) provider.Request {
	r := provider.Request{
		Kind: quote.ExactInput, Source: route.Source, Destination: route.Destination, Settlement: settlement,
		Deadline: route.Deadline, LastUse: route.LastUse, MinValidity: route.LeastValidity,
		MinValidUntil: now.Add(max(wantedValidity, route.LeastValidity+wire.MaxQuoteWait)),
	}
	if route.Source.Amount == nil {
		r.Kind = quote.ExactOutput
	}
	return r
}

func newQuote(by transfer.Caller, route *transfer.Route, of question, offer provider.Offer, known *registry.Snapshot, now time.Time) quote.Quote {
	q := quote.Quote{
		ID: transfer.NewID(now), AccountID: by.AccountID, Environment: by.Environment, Provider: of.Name, Kind: of.Kind, Type: route.Type,
		Source: route.Source, Destination: route.Destination, Deadline: route.Deadline, DefaultDeadline: route.DefaultDeadline, Settlement: of.Settlement,
		Duration: offer.Duration, CreatedAt: now, ExpiresAt: offer.ValidUntil,
	}
	if q.Kind == quote.ExactOutput {
		q.Source.Amount = offer.Amount
	} else {
		q.Destination.Amount = offer.Amount
	}
	// The providers' APIs state no fees.
	source, _ := known.Token(q.Source.Token)
	destination, _ := known.Token(q.Destination.Token)
	if fee, ok := q.TotalFee(source, destination); ok {
		q.Fees = append(q.Fees, fee)
	}
	return q
}
