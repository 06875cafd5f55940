package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"intents.internal/core/events/webhook"
)

const (
	// connectTimeout bounds the name lookup and connect, and separately the TLS handshake.
	connectTimeout = 5 * time.Second
	// attemptTimeout bounds the complete attempt.
	attemptTimeout = 15 * time.Second
	// maxBodyBytes bounds the bytes of a response body that are read, and bodyTimeout the time. Only the status counts; reading
	// the body to its end allows the connection to be reused.
	maxBodyBytes, bodyTimeout = 4 << 10, time.Second
	// maxHeaderBytes bounds a response's header.
	maxHeaderBytes = 16 << 10
	// idleConnections and idlePerHost bound the idle connections, which are closed after idleTimeout.
	idleConnections, idlePerHost = 256, 4
	idleTimeout                  = 30 * time.Second
	// pingAfter is how long an HTTP/2 connection may be silent before a ping checks it, so that a dead connection does not fail
	// every attempt.
	pingAfter = 10 * time.Second
	userAgent = "transfer-intents-webhooks/1.0"
)

// ClientConfig is the client's configuration.
type ClientConfig struct {
	// Network decides which addresses may be called.
	Network *webhook.Network
	// Resolver resolves names, nil for the system's.
	Resolver *net.Resolver
	// Roots are the trusted certificate authorities, nil for the system's.
	Roots *x509.CertPool
	// Now is the database's clock.
	Now func() time.Time
}

// Client sends the requests to receivers. It does not connect to addresses that the network refuses, follow redirects or use a
// proxy.
type Client struct {
	transport *http.Transport
	now       func() time.Time
	// timeout is attemptTimeout.
	timeout time.Duration
}

// NewClient returns a client. Close closes its idle connections.
func NewClient(config ClientConfig) *Client {
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: config.Resolver, Control: config.Network.Control}
	return &Client{now: config.Now, timeout: attemptTimeout, transport: &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: config.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		DisableCompression:     true,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: connectTimeout},
	}}
}

// Close closes the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Message is a webhook message of Standard Webhooks 1.0.
type Message struct {
	URL string
	// ID is the header webhook-id, the same in every attempt.
	ID   string
	Body []byte
	// Secrets sign the message.
	Secrets []webhook.Secret
}

// Send makes one attempt, signed with the current time.
func (c *Client) Send(ctx context.Context, m Message) webhook.Attempt {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var progress progress
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, progress.trace()), http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return webhook.Attempt{Outcome: webhook.Malformed, EndedAt: c.now()}
	}
	at := c.now()
	request.Header = http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {userAgent},
		"Webhook-Id":        {m.ID},
		"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
		"Webhook-Signature": {webhook.Sign(m.Secrets, m.ID, at, m.Body)},
	}
	response, err := c.transport.RoundTrip(request) //nolint:bodyclose // readBody closes it
	if err != nil {
		return webhook.Attempt{Outcome: progress.outcome(err), EndedAt: c.now()}
	}
	readBody(response.Body, cancel)
	return webhook.NewAnswer(response.StatusCode, response.Header, c.now())
}

// readBody reads the body up to its bounds and closes it.
func readBody(body io.ReadCloser, cancel context.CancelFunc) {
	timer := time.AfterFunc(bodyTimeout, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxBodyBytes) // only the status counts
	_ = body.Close()
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
func (p *progress) outcome(err error) webhook.Outcome {
	var network net.Error
	switch {
	case errors.Is(err, webhook.ErrURLNotAllowed):
		return webhook.AddressRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return webhook.TimedOut
	case p.tlsFailed.Load():
		return webhook.BadTLS
	case !p.connected.Load():
		return webhook.NotConnected
	case strings.Contains(err.Error(), "headers exceeded"), strings.Contains(err.Error(), "header list larger"):
		return webhook.TooLarge // net/http has no error value for it
	}
	return webhook.Malformed
}
