package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"intents.internal/core/outbound"
)

const (
	// attemptTimeout bounds the complete attempt.
	attemptTimeout = 15 * time.Second
	// maxBodyBytes bounds the bytes of a response body that are read, and bodyTimeout the time. Only the status counts: the body is
	// for the endpoint's owner, and reading it to its end allows the connection to be reused.
	maxBodyBytes, bodyTimeout = 4 << 10, time.Second
	// maxSuccessBytes bounds what is kept of the body of a success: there are many, and it rarely explains anything.
	maxSuccessBytes = 512
	userAgent       = "transfer-intents-webhooks/1.0"
)

// Client sends the requests to receivers.
type Client struct {
	http *http.Client
	now  func() time.Time
}

// NewClient returns a client that calls only these networks; now is the database's clock. Close closes its idle connections.
func NewClient(networks *outbound.Networks, now func() time.Time) *Client {
	return &Client{now: now, http: outbound.NewClient(outbound.Config{Networks: networks, Timeout: attemptTimeout, MaxBody: maxBodyBytes})}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Message is a webhook message of Standard Webhooks 1.0.
type Message struct {
	URL string
	// ID is the header webhook-id, the same in every attempt.
	ID   string
	Body []byte
	// Secrets sign the message.
	Secrets []Secret
}

// Send makes one attempt, signed with the current time.
func (c *Client) Send(ctx context.Context, m Message) Attempt {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var progress progress
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, progress.trace()), http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Attempt{Outcome: Malformed, EndedAt: c.now()}
	}
	at, started := c.now(), time.Now()
	request.Header = http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {userAgent},
		"Webhook-Id":        {m.ID},
		"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
		"Webhook-Signature": {Sign(m.Secrets, m.ID, at, m.Body)},
	}
	response, err := c.http.Do(request) //nolint:bodyclose // readBody closes it
	if err != nil {
		return Attempt{Outcome: progress.outcome(err), Duration: time.Since(started), EndedAt: c.now()}
	}
	body := readBody(response.Body, cancel)
	ended := c.now()
	a := NewAnswer(response.StatusCode, outbound.RetryAfter(response.Header, ended), ended)
	a.Duration, a.ResponseBody = time.Since(started), bodyText(body, maxBodyBytes)
	if a.Outcome == Succeeded {
		a.ResponseBody = bodyText(body, maxSuccessBytes)
	}
	return a
}

// readBody reads the body up to its bounds and closes it. It returns what came of it.
func readBody(body io.ReadCloser, cancel context.CancelFunc) []byte {
	timer := time.AfterFunc(bodyTimeout, cancel)
	defer timer.Stop()
	var read bytes.Buffer
	_, _ = io.Copy(&read, io.LimitReader(body, maxBodyBytes)) // a body that ends early is kept so far
	_ = body.Close()
	return read.Bytes()
}

// bodyText returns the beginning of a body, at most limit bytes, as text that Postgres stores: what is not UTF-8, and NUL, becomes U+FFFD.
func bodyText(body []byte, limit int) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// progress records the phases that a request has completed.
type progress struct{ connected, tlsFailed atomic.Bool }

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { p.connected.Store(true) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				p.tlsFailed.Store(true)
			}
		},
	}
}

// outcome returns the outcome of an attempt without a response.
func (p *progress) outcome(err error) Outcome {
	var network net.Error
	switch {
	case errors.Is(err, outbound.ErrAddressNotAllowed):
		return AddressRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return TimedOut
	case p.tlsFailed.Load():
		return BadTLS
	case !p.connected.Load():
		return NotConnected
	case strings.Contains(err.Error(), "headers exceeded"), strings.Contains(err.Error(), "header list larger"):
		return TooLarge // net/http has no error value for it
	}
	return Malformed
}
