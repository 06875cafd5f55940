// Package client speaks to the Transfer Intent Service with an API key, or with a client token for one intent, see [New]. It has a method for each
// operation under /v2:
//
//	c, err := client.New("https://intents.example.com", key)
//	quotes, err := c.Quotes.Create(ctx, client.CreateQuotes{Source: …, Destination: …})
//	transfer, err := c.Transfers.Create(ctx, client.CreateTransfer{QuoteID: quotes.Quotes[0].ID})
//	// a wallet signs and sends transfer.Tx, which gives a hash
//	_, err = c.Transfers.Report(ctx, transfer.ID, hash)
//	transfer, err = c.Transfers.Wait(ctx, transfer.ID, client.WaitOptions{})
//
// # Retries
//
// A request is tried at most three times: after a connection error, and after 408, 429, 500, 502, 503 and 504. The client waits for as long as
// Retry-After says, at most a minute; without it a random time up to half a second, then up to a second. A GET and a DELETE are always
// repeated, a POST only where it has an Idempotency-Key: [Transfers.Create], [Batches.Create] and [Webhooks.Create] make one and send it
// with each try, so that a repeat never makes a second intent. Everything else is tried once. A wait that would outlast the context's deadline is not begun.
//
// # Signatures
//
// Who has no gas signs in place of sending: an intent with Signing has typed data, [Transfers.SubmitSignature] takes the signature, and any account
// sends the transaction that [Transfers.Relay] then has.
//
// # Batches
//
// [Batches.Create] records many intents in one request, all or none, and cuts a list that is too long for one batch: with a key of your own the call
// can be repeated until all are there, and makes nothing twice. [Batches.Calls] has what a wallet signs for them, and [Batches.Report] takes the hash.
//
// # Errors
//
// A failed request is an [*Error]. Its code tells errors apart:
//
//	if errors.Is(err, client.CodeQuoteExpired) { … }
//
// # Waits
//
// [Transfers.Wait] ends when an intent has, after two hours unless told otherwise, and not for a failure that passes. Any number of waits of one
// client follow the feed of events with one request at a time.
//
// # Webhooks
//
// Package webhook, beside this one, verifies and decodes what the service posts to webhooks.
//
// The package needs the standard library alone. A [Client] may be used by several goroutines.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client is the API of one service for the holder of one key.
type Client struct {
	Transfers *Transfers
	Batches   *Batches
	Quotes    *Quotes
	Tokens    *Tokens
	Chains    *Chains
	Usage     *Usage
	Events    *Events
	Webhooks  *Webhooks
	Origins   *Origins

	base     string
	key      string
	http     *http.Client
	maxTries int
	feed     *feedReader

	// now is the clock that a date in Retry-After is compared with, random a number in [0, 1), sleep a pause.
	now    func() time.Time
	random func() float64
	sleep  func(context.Context, time.Duration) error
}

// Option changes what New returns.
type Option func(*Client)

// WithHTTPClient makes requests with a copy of this client that follows no redirect. Its Timeout bounds each try.
func WithHTTPClient(http *http.Client) Option {
	return func(c *Client) { c.http = cmp.Or(http, c.http) }
}

// WithMaxTries makes at most so many tries of a request, 1 for no repeats. The default is 3.
func WithMaxTries(tries int) Option { return func(c *Client) { c.maxTries = tries } }

// New returns the client of the service at a base URL, such as https://intents.example.com. The key is sent to that origin only: no redirect is followed.
// In place of a key a client token does: with it Transfers has Get, Preflight, Report and Wait, for the token's intent alone.
func New(baseURL, key string, options ...Option) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Hostname() == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("the base URL %q is not an http or https URL", baseURL)
	}
	if base.User != nil || strings.ContainsAny(baseURL, "?#") {
		return nil, errors.New("the base URL has userinfo, a query or a fragment: leave only scheme, host and path")
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the key is empty or has characters that no key has: give it as the service showed it")
	}
	c := &Client{
		base: strings.TrimRight(baseURL, "/"), key: key,
		http: &http.Client{}, maxTries: maxTries, now: time.Now, random: rand.Float64, sleep: sleep,
	}
	for _, option := range options {
		option(c)
	}
	direct := *c.http
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &direct
	c.Transfers, c.Quotes, c.Tokens, c.Chains = &Transfers{c}, &Quotes{c}, &Tokens{c}, &Chains{c}
	c.Batches, c.Events, c.Webhooks, c.Origins, c.Usage = &Batches{c}, &Events{c}, &Webhooks{c}, &Origins{c}, &Usage{c}
	c.feed = &feedReader{c: c, waits: map[*waiter]bool{}}
	return c, nil
}

// sleep pauses unless the context ends first.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
