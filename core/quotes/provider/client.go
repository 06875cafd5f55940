package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/outbound"
	"intents.internal/core/quotes/quote"
	"intents.internal/pkg/fair"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/transport"
)

const (
	// maxInFlight bounds the calls to a provider in flight, and maxPerAccount those of one account, so that an account that asks all the
	// time, or whose routes are slow, leaves room for others.
	maxInFlight, maxPerAccount = 64, 16
	// maxAnswer bounds the bytes of an answer after decompression.
	maxAnswer = 1 << 20
	// minPause and maxPause bound how long a provider is not asked after it answered 429.
	minPause, maxPause = time.Second, time.Minute
	// failureLogEvery is the interval of a provider's log lines.
	failureLogEvery = time.Minute
	// ratedAccounts bounds the accounts of a provider whose requests are counted.
	ratedAccounts = 1 << 12
)

// Options are what all providers share.
type Options struct {
	// Networks are the addresses that may be called, of which http:// reaches the allowed ones alone; nil allows all.
	Networks *outbound.Networks
	Registry prometheus.Registerer
	Log      *slog.Logger
	// Transport replaces the network in tests.
	Transport http.RoundTripper
}

// Providers are those of CORE_QUOTES_FILE. They are safe for concurrent use.
type Providers struct {
	all []*Provider
}

// New returns the providers of endpoints that ReadFile returned. Close closes their idle connections.
func New(endpoints []Endpoint, options Options) *Providers {
	clients := map[string]*http.Client{} // by scheme
	metrics := newMetrics(options.Registry, endpoints)
	providers := &Providers{}
	for _, e := range endpoints {
		address, err := parseURL(e.URL.Reveal())
		if err != nil {
			panic(fmt.Sprintf("provider %s: %s", e.Name, err)) // ReadFile checks it
		}
		client := clients[address.Scheme]
		if client == nil {
			client = outbound.NewClient(outbound.Config{
				Networks: networksOf(address, options.Networks), MaxBody: maxAnswer, Transport: options.Transport,
			})
			clients[address.Scheme] = client
		}
		dialect := dialects[e.Kind]
		providers.all = append(providers.all, &Provider{
			Name: e.Name, Deployment: e.Deployment, environment: e.Environment, dialect: dialect,
			host: address.Host, address: address.JoinPath(dialect.path()).String(), headers: headersOf(e), timeout: e.Timeout,
			reserveBps: e.ReserveBps, orders: ordersAddress(e, address), secrets: secretsOf(e, address), orderBreaker: newBreaker(),
			client: client, breaker: newBreaker(), slots: fair.New[uuid.UUID](maxInFlight, fair.AtMost(maxPerAccount)), metrics: metrics,
			accountRate: accountRate(e.AccountRequests), buckets: tokenbucket.NewMemory(ratedAccounts),
			log: options.Log, logged: telemetry.Sampler{Every: failureLogEvery},
		})
	}
	return providers
}

func headersOf(e Endpoint) http.Header {
	headers := http.Header{"User-Agent": {"intents-core"}}
	for name, value := range e.Headers {
		headers.Set(name, value.Reveal())
	}
	headers.Set("Content-Type", "application/json")
	headers.Set("Accept", "application/json")
	return headers
}

// Close closes the idle connections.
func (p *Providers) Close() {
	for _, one := range p.all {
		one.client.CloseIdleConnections() // which several may share
	}
}

// In returns the providers of an environment in the file's order; nil has none.
func (p *Providers) In(environment network.Environment) (here []*Provider) {
	if p == nil {
		return nil
	}
	for _, one := range p.all {
		if one.environment == environment {
			here = append(here, one)
		}
	}
	return here
}

// accountRate bounds the requests of each account in time, so that none of them alone uses up what the provider grants to all: after a 429 it
// is closed to everybody. Ten seconds' worth of the requests of a minute may come at once.
func accountRate(requests int) tokenbucket.Rule {
	return tokenbucket.Rule{Rate: requests, Burst: (requests + 5) / 6, Period: time.Minute}
}

// Provider is a solver or an aggregator that quotes. Its URL and its headers are in no error, log or metric.
type Provider struct {
	Name        string
	Deployment  string
	environment network.Environment
	dialect     dialect
	host        string
	address     string
	headers     http.Header
	timeout     time.Duration
	reserveBps  int64
	// orders is where signed orders are posted, nil for a provider that takes none.
	orders *url.URL
	// orderBreaker is of the requests about orders, which can fail where quotes do not.
	orderBreaker *breaker
	// secrets replaces the values of the headers and the URL in what the provider says.
	secrets     *strings.Replacer
	client      *http.Client
	breaker     *breaker
	accountRate tokenbucket.Rule
	buckets     *tokenbucket.Memory
	pause       pause
	metrics     *metrics
	log         *slog.Logger
	logged      telemetry.Sampler
	// slots bounds the calls in flight. Nobody waits for one: a quote that comes late is worth nothing.
	slots *fair.Slots[uuid.UUID]
	// claimPeriods is done once it is logged that the provider's are longer than ours.
	claimPeriods sync.Once
}

// Ask returns what the provider offers, the best first, at most 20 offers. It makes one request, within the provider's timeout and the context,
// and none while the provider is down, asks for fewer requests, or is asked too much by the account. now is when the client has the
// offers, which hold for the request's MinValidity from then.
func (p *Provider) Ask(ctx context.Context, account uuid.UUID, r Request, now time.Time) ([]Offer, *Error) {
	offers, failure := p.ask(ctx, account, r, now)
	if failure != nil && (failure.abandoned || failure.overRate) { // which say nothing of the provider
		return nil, failure
	}
	p.metrics.requests.WithLabelValues(string(p.environment), p.Name).Inc()
	if failure != nil {
		p.metrics.failures.WithLabelValues(string(p.environment), p.Name, string(failure.Code)).Inc()
		p.logFailure(ctx, failure)
	}
	return offers, failure
}

var (
	errPaused   = errors.New("the provider asked for fewer requests and is not asked for a while")
	errRate     = errors.New("the account has made its accountRequestsPerMinute of the provider")
	errDown     = errors.New("the provider has failed several times in a row and is not asked for a while")
	errOverload = fmt.Errorf("%d calls to the provider, or %d of the account, are in flight", maxInFlight, maxPerAccount)
)

func (p *Provider) ask(ctx context.Context, account uuid.UUID, r Request, now time.Time) ([]Offer, *Error) {
	request, err := p.dialect.encode(r)
	if err != nil {
		return nil, &Error{Code: quote.ProviderRefused, Cause: err}
	}
	if left := p.pause.left(); left > 0 {
		return nil, &Error{Code: quote.ProviderRateLimited, RetryAfter: left, Cause: errPaused}
	}
	if wait := p.buckets.Take(tokenbucket.Bucket{Name: account.String(), Rule: p.accountRate}); wait > 0 {
		return nil, &Error{Code: quote.ProviderRateLimited, RetryAfter: wait, Cause: errRate, overRate: true}
	}
	if p.slots.TryAcquire(account) != fair.Granted {
		return nil, &Error{Code: quote.ProviderUnavailable, Cause: errOverload}
	}
	defer p.slots.Release(account)
	body, err := p.breaker.do(account, func() ([]byte, error) { return p.exchange(ctx, r, request) })
	if err != nil {
		return nil, asError(err)
	}
	candidates, err := p.dialect.decode(body)
	if err != nil {
		return nil, &Error{Code: quote.ProviderInvalid, Cause: err}
	}
	p.compareClaimPeriods(ctx, candidates, r.Settlement.Expires.Sub(r.Deadline))
	offers, failure := r.selectOffers(candidates, now, func(reason dropReason) { p.metrics.dropped.WithLabelValues(p.Name, string(reason)).Inc() })
	if offers = r.reserve(offers, p.reserveBps); failure == nil && len(offers) == 0 {
		failure = &Error{Code: quote.NoQuote, Cause: errNone}
	}
	return offers, failure
}

// DropOutliers counts offers that are too far from those of other providers to be handed out.
func (p *Provider) DropOutliers(n int) {
	p.metrics.dropped.WithLabelValues(p.Name, string(dropOutlier)).Add(float64(n))
}

// compareClaimPeriods logs once that the provider's orders can be claimed for longer than ours.
func (p *Provider) compareClaimPeriods(ctx context.Context, candidates []candidate, ours time.Duration) {
	for _, c := range candidates {
		if c.order != nil && !c.order.unreadable && c.order.claimPeriod() > ours {
			p.claimPeriods.Do(func() {
				p.log.WarnContext(ctx, "a provider's orders can be claimed for longer than ours, so it may leave them alone: raise claimPeriod of the deployment's settlements",
					"provider", p.Name, "deployment", p.Deployment, "seconds", c.order.claimPeriod().Seconds(), "claim_period", ours.Seconds())
			})
			return
		}
	}
}

// asError returns the error of a call, or of the breaker that made none.
func asError(err error) *Error {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure
	}
	return &Error{Code: quote.ProviderUnavailable, Cause: errDown}
}

// exchange makes one request and returns the body of an answer with status 200; the error is an *Error.
func (p *Provider) exchange(ctx context.Context, r Request, body []byte) ([]byte, error) {
	began := time.Now()
	defer func() { p.metrics.seconds.WithLabelValues(p.Name).Observe(time.Since(began).Seconds()) }()
	call, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	response, err := p.send(call, http.MethodPost, p.address, body)
	if err != nil {
		return nil, noAnswer(ctx, err)
	}
	defer response.Body.Close()
	status, retryAfter := fmt.Errorf("HTTP %d", response.StatusCode), min(outbound.RetryAfter(response.Header, time.Now()), maxPause)
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests:
		wait := max(retryAfter, minPause)
		p.pause.extend(wait)
		return nil, &Error{Code: quote.ProviderRateLimited, RetryAfter: wait, Cause: status}
	case code == http.StatusBadGateway, code == http.StatusGatewayTimeout: // a proxy's
		return nil, &Error{Code: quote.ProviderUnavailable, RetryAfter: retryAfter, Cause: status}
	case code != http.StatusOK && code < http.StatusBadRequest:
		return nil, &Error{Code: quote.ProviderInvalid, Cause: status}
	}
	answer, err := io.ReadAll(response.Body)
	failed := response.StatusCode >= http.StatusInternalServerError
	switch {
	case failed && err == nil && aboutQuestion(answer):
		return nil, &Error{Code: quote.NoQuote, Cause: status}
	case failed && (err == nil || errors.Is(err, transport.ErrBodyTooLarge)):
		return nil, &Error{Code: quote.ProviderUnavailable, RetryAfter: retryAfter, Cause: status}
	case err != nil:
		return nil, noAnswer(ctx, err)
	case response.StatusCode != http.StatusOK:
		return nil, &Error{Code: p.dialect.refusal(r, answer), Cause: status}
	}
	return answer, nil
}

// send makes one request with the provider's headers.
func (p *Provider) send(ctx context.Context, method, address string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL cannot be requested")
	}
	request.Header = p.headers.Clone()
	return p.client.Do(request)
}

// logFailure logs that a provider fails, at most once in failureLogEvery. An answer without a quote is no failure.
func (p *Provider) logFailure(ctx context.Context, failure *Error) {
	if failure.Code == quote.NoQuote || failure.Code == quote.ExactOutputUnsupported {
		return
	}
	if suppressed, due := p.logged.Due(); due {
		p.log.WarnContext(ctx, "a provider of quotes fails", "provider", p.Name, "host", p.host, "code", failure.Code, "error", failure.Cause.Error(),
			"suppressed", suppressed)
	}
}

// pause is until when a provider is not asked.
type pause struct {
	mu    sync.Mutex
	until time.Time
}

func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.until)
}

func (p *pause) extend(wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(wait); until.After(p.until) {
		p.until = until
	}
}
