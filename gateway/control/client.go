// Package control is what the gateway itself asks of core, as typed calls: key verification, key changes, the accounts with new
// events, usage reports, and the documents that all clients share, such as the chains and their environments.
//
// It encodes requests, decodes responses and names their errors. Package upstream sends them.
package control

import (
	"cmp"
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

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

const (
	// maxResponseBytes bounds a response. The longest, except for a filter, holds the key changes of an outage.
	maxResponseBytes = 16 << 20
	// maxFilterBytes bounds a filter. It is enough for 20 million keys.
	maxFilterBytes = 64 << 20
)

var (
	// ErrUnknownKey means that the key may not be used: core does not know it, or it is disabled, expired or without an account.
	ErrUnknownKey = errors.New("core has no usable key with this hash")
	// ErrCursorExpired means that changes since the cursor may have been missed.
	ErrCursorExpired = errors.New("the cursor is older than what core keeps")
	// ErrNotModified means that the caller's copy is current.
	ErrNotModified = errors.New("not modified")
	// ErrReportRefused means that core will never store the report.
	ErrReportRefused = errors.New("core refuses the usage report")
)

// Client is safe for concurrent use. All cores share one database, so any core can respond, also to a cursor from another core.
type Client struct {
	upstream *upstream.Client
	// lastResponse is when a core last answered, nil for never.
	lastResponse atomic.Pointer[time.Time]
}

// New creates a client.
func New(u *upstream.Client) *Client { return &Client{upstream: u} }

// Silence is the time since a core last answered, MaxInt64 before the first answer.
func (c *Client) Silence() time.Duration {
	answered := c.lastResponse.Load()
	if answered == nil {
		return math.MaxInt64
	}
	return time.Since(*answered)
}

// Verification describes a usable key.
type Verification struct {
	wire.VerifiedKey
	// ExpiresIn is the time until ExpiresAt by core's clock, because the gateway's clock may be wrong; it is up to one second
	// short. It has no meaning if ExpiresAt is nil.
	ExpiresIn time.Duration
}

// VerifyKey returns ErrUnknownKey for a key that may not be used. Any other error means that the result is unknown.
func (c *Client) VerifyKey(ctx context.Context, hash apikey.Hash) (Verification, error) {
	body, err := json.Marshal(wire.VerifyKeyRequest{Hash: hex.EncodeToString(hash[:])})
	if err != nil {
		return Verification{}, fmt.Errorf("verify key: %w", err)
	}
	var v Verification
	r, err := c.call(ctx, upstream.Call{Method: http.MethodPost, Target: wire.PathVerifyKey, Body: body}, http.StatusOK, &v.VerifiedKey)
	if errors.Is(err, statusError{http.StatusNotFound, wire.InvalidAPIKey}) {
		return Verification{}, ErrUnknownKey
	}
	if err == nil {
		err = validate(v.VerifiedKey)
	}
	if err != nil {
		return Verification{}, fmt.Errorf("verify key: %w", err)
	}
	if v.ExpiresAt != nil {
		now := time.Now()
		if date, err := http.ParseTime(string(r.Head.Peek("Date"))); err == nil {
			now = date.Add(time.Second) // the header has no fraction of the second
		}
		v.ExpiresIn = v.ExpiresAt.Sub(now)
	}
	return v, nil
}

func validate(v wire.VerifiedKey) error {
	if v.KeyID == "" || v.AccountID == "" || v.LimitBucket == "" || v.Environment == "" ||
		min(v.Limit.Requests, v.Limit.PeriodSeconds, v.AccountLimit.Requests, v.AccountLimit.PeriodSeconds) < 1 {
		return errors.New("core's response lacks the key id, account id, bucket, environment or a limit")
	}
	return nil
}

// KeyChanges waits up to wait for keys that changed since cursor. An empty cursor returns the current one. It returns
// ErrCursorExpired if changes may have been missed or are too many for a response.
func (c *Client) KeyChanges(ctx context.Context, cursor string, wait time.Duration) (changes wire.KeyChanges, err error) {
	if err = c.poll(ctx, wire.PathKeyChanges, cursor, wait, &changes); err == nil && changes.Cursor == "" {
		err = errors.New("core's response lacks the cursor")
	}
	if err != nil {
		return wire.KeyChanges{}, fmt.Errorf("get key changes: %w", err)
	}
	return changes, nil
}

// EventAccounts waits up to wait for accounts with events above the position. An empty position returns the current one at once.
// It returns ErrCursorExpired if core cannot tell which accounts have events above the position.
func (c *Client) EventAccounts(ctx context.Context, position string, wait time.Duration) (accounts wire.EventAccounts, err error) {
	if err = c.poll(ctx, wire.PathEventAccounts, position, wait, &accounts); err == nil && accounts.Position == "" {
		err = errors.New("core's response lacks the position")
	}
	if err != nil {
		return wire.EventAccounts{}, fmt.Errorf("get the accounts with events: %w", err)
	}
	return accounts, nil
}

// poll waits up to wait for what follows the cursor, empty for the current one.
func (c *Client) poll(ctx context.Context, path, cursor string, wait time.Duration, out any) error {
	target := func(wait time.Duration) string {
		query := url.Values{"wait": {wait.String()}}
		if cursor != "" {
			query.Set("after", cursor)
		}
		return path + "?" + query.Encode()
	}
	_, err := c.call(ctx, upstream.Call{
		Method: http.MethodGet, Target: target(wait), Wait: wait,
		RetryTarget: target(0), // no time is left to wait at the next core
	}, http.StatusOK, out)
	if errors.Is(err, upstream.ErrTooLong) || errors.Is(err, statusError{http.StatusGone, wire.CursorExpired}) {
		return ErrCursorExpired
	}
	return err
}

// KeyFilter returns the filter of existing keys, and the cursor for the changes since it was made.
func (c *Client) KeyFilter(ctx context.Context) (filter *apikey.Filter, cursor string, err error) {
	var got wire.KeyFilter
	_, err = c.call(ctx, upstream.Call{Method: http.MethodGet, Target: wire.PathKeyFilter, MaxBody: maxFilterBytes}, http.StatusOK, &got)
	if err == nil && got.Cursor == "" {
		err = errors.New("core's response lacks the cursor")
	}
	filter = new(apikey.Filter)
	if err == nil {
		err = filter.UnmarshalBinary(got.Filter)
	}
	if err != nil {
		return nil, "", fmt.Errorf("get the filter of keys: %w", err)
	}
	return filter, got.Cursor, nil
}

// Document is a response of core that all clients share.
type Document struct {
	Header http.Header
	Body   []byte
}

// Document gets a path of core's public API in the content coding, empty for none. It returns ErrNotModified if the caller's
// etag, empty for none, is current.
func (c *Client) Document(ctx context.Context, target, coding, etag string) (Document, error) {
	r, err := c.call(ctx, upstream.Call{Method: http.MethodGet, Target: target, ETag: etag, Coding: coding}, http.StatusOK, nil)
	switch {
	case statusOf(err) == http.StatusNotModified:
		return Document{}, ErrNotModified
	case err != nil:
		return Document{}, fmt.Errorf("get %s: %w", target, err)
	}
	header := http.Header{}
	for name, value := range r.Head.All() {
		header.Add(string(name), string(value))
	}
	return Document{Header: header, Body: r.Body}, nil
}

// ReportUsage sends a report. After ErrReportRefused the report must not be sent again. After any other error it must, because
// core stores it exactly once.
func (c *Client) ReportUsage(ctx context.Context, report wire.UsageReport) error {
	body, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("report usage: %w", err)
	}
	_, err = c.call(ctx, upstream.Call{Method: http.MethodPost, Target: wire.PathUsage, Body: body}, http.StatusNoContent, nil)
	switch {
	case errors.Is(err, statusError{http.StatusBadRequest, wire.InvalidRequest}), errors.Is(err, statusError{http.StatusRequestEntityTooLarge, wire.PayloadTooLarge}):
		return fmt.Errorf("report usage: %w: %w", ErrReportRefused, err)
	case err != nil:
		return fmt.Errorf("report usage: %w", err)
	}
	return nil
}

// statusError is the error of a response with another status than a call wants.
type statusError struct {
	status int
	code   wire.Code
}

func (e statusError) Error() string { return fmt.Sprintf("core answered %d %s", e.status, e.code) }

// statusOf is the status of a statusError, 0 of another error.
func statusOf(err error) int {
	e, _ := errors.AsType[statusError](err)
	return e.status
}

// call returns a statusError for another status than it wants. It decodes the body as JSON, unless out is nil.
func (c *Client) call(ctx context.Context, call upstream.Call, want int, out any) (*upstream.Response, error) {
	call.MaxBody = cmp.Or(call.MaxBody, maxResponseBytes)
	r, err := c.upstream.Call(ctx, call)
	if err != nil {
		return nil, err
	}
	if r.Status() < http.StatusInternalServerError {
		now := time.Now()
		c.lastResponse.Store(&now)
	}
	if r.Status() != want {
		return nil, statusError{r.Status(), wire.CodeOf(r.Body)}
	}
	if out != nil {
		return r, json.Unmarshal(r.Body, out)
	}
	return r, nil
}
