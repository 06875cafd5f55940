package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"
)

const (
	// tryTimeout bounds a try, beyond the time for which the service is asked to hold it.
	tryTimeout = 30 * time.Second
	// maxBody bounds a response's body in bytes.
	maxBody = 64 << 20
)

// request is a call of one operation.
type request struct {
	method, path string
	query        url.Values
	// body is encoded as JSON, nil for none.
	body any
	// idempotencyKey makes a POST safe to repeat. Empty is none.
	idempotencyKey string
	// wait is for how long the service is asked to hold the response.
	wait time.Duration
}

func (r request) repeatable() bool {
	return r.method == http.MethodGet || r.method == http.MethodDelete || r.idempotencyKey != ""
}

// call makes the request and returns what its response is decoded into, nil beside an error.
func call[T any](ctx context.Context, c *Client, r request) (*T, error) {
	result := new(T)
	if _, err := c.do(ctx, r, result); err != nil {
		return nil, err
	}
	return result, nil
}

// do makes the request, repeats it where that is safe and may help, and decodes the response into result unless that is nil.
func (c *Client) do(ctx context.Context, r request, result any) (http.Header, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("write the request %s %s: %w", r.method, r.path, err)
		}
	}
	if path.Clean(r.path) != r.path {
		return nil, fmt.Errorf("%s %s names nothing: give the id of a record", r.method, r.path)
	}
	for try := 1; ; try++ {
		header, failure := c.try(ctx, r, body, result)
		if failure == nil {
			return header, nil
		}
		if ctx.Err() != nil || !r.repeatable() || !failure.passes() || try >= c.maxTries {
			return nil, failure
		}
		pause := failure.pause(try, c.random())
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
			return nil, failure
		}
		if c.sleep(ctx, pause) != nil {
			return nil, failure
		}
	}
}

// try sends the request once.
func (c *Client) try(ctx context.Context, r request, body []byte, result any) (http.Header, *Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryTimeout+r.wait, errors.New("the service did not respond in time"))
	defer cancel()
	lost := func(err error) *Error {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return &Error{Message: fmt.Sprintf("%s %s%s has no response: %v; check the base URL and the connection", r.method, c.base, r.path, err), cause: err}
	}
	request, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Message: fmt.Sprintf("%s %s%s is no request: %v", r.method, c.base, r.path, err), cause: err, final: true}
	}
	if r.repeatable() {
		withoutReplay(request)
	}
	request.URL.RawQuery = r.query.Encode()
	if c.hasToken() {
		request.Header.Set("Authorization", "Bearer "+c.key)
	} else {
		request.Header.Set("X-Api-Key", c.key)
	}
	request.Header.Set("Accept", "application/json")
	if r.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, lost(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		if err != nil {
			text = nil // it is cut off, but the status and Retry-After are known
		}
		return nil, newError(r, response, text, c.now())
	}
	if err != nil {
		return nil, lost(err)
	}
	if err := decode(text, result); err != nil {
		return nil, &Error{
			Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"), cause: err, final: true,
			Message: fmt.Sprintf("%s %s%s has a response that is not this API's, check the base URL: %v", r.method, c.base, r.path, err),
		}
	}
	return response.Header, nil
}

// withoutReplay keeps net/http from repeating a request by itself, without a pause, where a kept connection ends: it repeats those alone whose
// body it has again, or that have none.
func withoutReplay(request *http.Request) {
	request.GetBody = nil
	if request.Body == http.NoBody {
		request.Body = struct{ io.ReadCloser }{http.NoBody}
	}
}

func decode(text []byte, result any) error {
	if len(text) > maxBody {
		return fmt.Errorf("it is longer than %d bytes", maxBody)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}
