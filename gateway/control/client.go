// Package control asks core what only core can decide: whether a key may be used, which keys have changed, and what the
// answers are that every client gets alike, the chains and their environments among them.
//
// Requests of the service's users never pass through it; they are package forward's.
package control

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

const (
	// maxAnswerBytes bounds what is read of one answer. The longest but a filter is the key changes of an outage.
	maxAnswerBytes = 16 << 20
	// maxFilterBytes is the bound of a filter, which has room for 20 million keys.
	maxFilterBytes = 64 << 20
)

var (
	// ErrUnknownKey says that no request may be made with the key: core knows none such, or it is disabled, expired or
	// its account is gone.
	ErrUnknownKey = errors.New("core knows no usable key with this hash")
	// ErrCursorExpired says that changes may have been missed since the cursor.
	ErrCursorExpired = errors.New("the key change cursor is older than what core keeps")
	// ErrNotModified says that the caller's copy is still right.
	ErrNotModified = errors.New("not modified")
	// ErrReportRefused says that core will never store the report.
	ErrReportRefused = errors.New("core refuses the usage report")
	// errTooLong says that an answer is longer than it may be.
	errTooLong = errors.New("core's answer is too long")
	// errLeft says that the core is no longer among the addresses of its name.
	errLeft = errors.New("core has left")
)

// Client speaks core's internal API. It is safe for concurrent use.
//
// What it asks can be asked twice without harm, so a question that one core does not answer goes to the next. All cores
// read one database, so an answer means the same whichever gave it: a cursor of the key changes, too.
type Client struct {
	cores  *cores.Set
	secret telemetry.Secret
	http   *cores.PerCore[*http.Client]
	// answered is when a core last answered anything, nil for never.
	answered atomic.Pointer[time.Time]
}

// New makes a client of the cores. maxConns bounds the connections it opens to each.
func New(set *cores.Set, secret telemetry.Secret, maxConns int) *Client {
	c := &Client{cores: set, secret: secret}
	c.http = cores.For(set, func(core *cores.Core) *http.Client {
		return &http.Client{
			Transport: &http.Transport{
				DialContext:         core.DialContext,
				TLSClientConfig:     set.TLS(core),
				MaxConnsPerHost:     maxConns,
				MaxIdleConnsPerHost: maxConns,
				// Below core's own idle timeout, so that core never closes a connection as a request leaves on it.
				IdleConnTimeout: 20 * time.Second,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}, func(_ *cores.Core, client *http.Client) { client.CloseIdleConnections() })
	return c
}

// Close drops idle connections. Calls under way end by their contexts.
func (c *Client) Close() {
	c.http.Each((*http.Client).CloseIdleConnections)
}

// Silence is how long ago any core last answered; it is endless before the first answer.
func (c *Client) Silence() time.Duration {
	answered := c.answered.Load()
	if answered == nil {
		return math.MaxInt64
	}
	return time.Since(*answered)
}

// Verification is what core says of a usable key.
type Verification struct {
	wire.VerifiedKey
	// ExpiresIn is the time left to ExpiresAt, reckoned from core's own clock so that the gateway's may be wrong; at
	// most a second short. It means nothing where ExpiresAt is nil.
	ExpiresIn time.Duration
}

// VerifyKey asks whether the key with this hash may be used, and answers ErrUnknownKey if not. Any other error means
// that core could not say.
func (c *Client) VerifyKey(ctx context.Context, hash apikey.Hash) (Verification, error) {
	body, err := json.Marshal(wire.VerifyKeyRequest{Hash: hex.EncodeToString(hash[:])})
	if err != nil {
		return Verification{}, fmt.Errorf("verify key: %w", err)
	}
	var v Verification
	answer, err := c.ask(ctx, question{method: http.MethodPost, target: wire.PathVerifyKey, body: body}, &v.VerifiedKey)
	switch {
	case err != nil:
		return Verification{}, fmt.Errorf("verify key: %w", err)
	case answer.status == http.StatusNotFound && answer.code == wire.InvalidAPIKey:
		return Verification{}, ErrUnknownKey
	case answer.status != http.StatusOK:
		return Verification{}, fmt.Errorf("verify key: %w", answer)
	}
	if err := check(v.VerifiedKey); err != nil {
		return Verification{}, fmt.Errorf("verify key: %w", err)
	}
	if v.ExpiresAt != nil {
		now := time.Now()
		if date, err := http.ParseTime(answer.header.Get("Date")); err == nil {
			now = date.Add(time.Second) // the header drops the fraction of the second
		}
		v.ExpiresIn = v.ExpiresAt.Sub(now)
	}
	return v, nil
}

func check(v wire.VerifiedKey) error {
	if v.KeyID == "" || v.AccountID == "" || v.LimitBucket == "" || v.Environment == "" || v.Limit.Requests < 1 || v.Limit.PeriodSeconds < 1 {
		return errors.New("core's answer lacks the key id, account id, bucket, environment or limit")
	}
	return nil
}

// KeyChanges waits up to wait for keys that changed since cursor. An empty cursor asks for the current one. It answers
// ErrCursorExpired when changes may have been missed, or are too many to be told.
func (c *Client) KeyChanges(ctx context.Context, cursor string, wait time.Duration) (wire.KeyChanges, error) {
	var changes wire.KeyChanges
	answer, err := c.ask(ctx, question{
		method: http.MethodGet, target: keyChanges(cursor, wait), hold: wait,
		// A core that is asked because another one did not answer has no time left to wait.
		again: keyChanges(cursor, 0),
	}, &changes)
	switch {
	case errors.Is(err, errTooLong):
		return wire.KeyChanges{}, ErrCursorExpired
	case err != nil:
		return wire.KeyChanges{}, fmt.Errorf("get key changes: %w", err)
	case answer.status == http.StatusGone:
		return wire.KeyChanges{}, ErrCursorExpired
	case answer.status != http.StatusOK:
		return wire.KeyChanges{}, fmt.Errorf("get key changes: %w", answer)
	case changes.Cursor == "":
		return wire.KeyChanges{}, errors.New("get key changes: core's answer lacks the cursor")
	}
	return changes, nil
}

func keyChanges(cursor string, wait time.Duration) string {
	query := url.Values{"wait": {wait.String()}}
	if cursor != "" {
		query.Set("after", cursor)
	}
	return wire.PathKeyChanges + "?" + query.Encode()
}

// KeyFilter gets the filter of existing keys, and the cursor that tells the changes since it was made.
func (c *Client) KeyFilter(ctx context.Context) (filter *apikey.Filter, cursor string, err error) {
	var got wire.KeyFilter
	filter = new(apikey.Filter)
	answer, err := c.ask(ctx, question{method: http.MethodGet, target: wire.PathKeyFilter, longest: maxFilterBytes}, &got)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("get the filter of keys: %w", err)
	case answer.status != http.StatusOK:
		return nil, "", fmt.Errorf("get the filter of keys: %w", answer)
	case got.Cursor == "":
		return nil, "", errors.New("get the filter of keys: core's answer lacks the cursor")
	}
	if err := filter.UnmarshalBinary(got.Filter); err != nil {
		return nil, "", fmt.Errorf("get the filter of keys: %w", err)
	}
	return filter, got.Cursor, nil
}

// Document is an answer of core's that is the same for every client.
type Document struct {
	Header http.Header
	Body   []byte
}

// Document gets what a path of core's public API answers, in the content coding, empty for none. An unchanged answer is
// ErrNotModified; etag is that of the copy the caller has, empty for none.
func (c *Client) Document(ctx context.Context, target, coding, etag string) (Document, error) {
	var body []byte
	answer, err := c.ask(ctx, question{method: http.MethodGet, target: target, etag: etag, coding: coding}, &body)
	switch {
	case err != nil:
		return Document{}, fmt.Errorf("get %s: %w", target, err)
	case answer.status == http.StatusNotModified:
		return Document{}, ErrNotModified
	case answer.status != http.StatusOK:
		return Document{}, fmt.Errorf("get %s: %w", target, answer)
	}
	return Document{Header: answer.header, Body: body}, nil
}

// ReportUsage tells core what became of the keys' requests. It answers ErrReportRefused when the report must not be sent
// again; after any other error core may have stored it or not, and stores it once if it comes again.
func (c *Client) ReportUsage(ctx context.Context, report wire.UsageReport) error {
	body, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("report usage: %w", err)
	}
	answer, err := c.ask(ctx, question{method: http.MethodPost, target: wire.PathUsage, body: body}, nil)
	switch {
	case err != nil:
		return fmt.Errorf("report usage: %w", err)
	case answer.status == http.StatusBadRequest, answer.status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("report usage: %w: %w", ErrReportRefused, answer)
	case answer.status != http.StatusNoContent:
		return fmt.Errorf("report usage: %w", answer)
	}
	return nil
}
