// Package outbound is the policy of core's requests to other services: receivers of webhooks, nodes of chains, providers of quotes, the
// OpenID Connect provider and the mail server.
//
// It owns which addresses are dialled, TLS, the time limits, and the bounds of responses and idle connections. Nothing outlives the
// context of its request, whatever protocol the other side speaks. The clients of HTTP follow no redirect, which would carry credentials
// to another host, and use no proxy of the environment, which would hide the dialled address. How often a service is called and what a
// response means is the caller's.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// connectTimeout bounds the name lookup and connect, and separately the TLS handshake.
	connectTimeout = 5 * time.Second
	// maxHeaderBytes bounds a response's header.
	maxHeaderBytes = 16 << 10
	// idleConnections and idlePerHost bound the idle connections of a client, which are closed after idleTimeout.
	idleConnections, idlePerHost = 256, 8
	idleTimeout                  = 30 * time.Second
	// pingAfter is how long an HTTP/2 connection may be silent before a ping checks it, so that a dead connection does not fail
	// every request.
	pingAfter = 10 * time.Second
)

// ErrBodyTooLarge is what reading a response's body returns after Config.MaxBody bytes.
var ErrBodyTooLarge = errors.New("the response is over the size that is read")

// Config is what differs between the services that are called.
type Config struct {
	// Networks are the addresses that may be dialled; nil allows all, for services that the operator names.
	Networks *Networks
	// Timeout bounds a request until its body is read; 0 means no bound but the request's context.
	Timeout time.Duration
	// MaxBody bounds the bytes of a body that can be read, after decompression; 0 means no bound.
	MaxBody int64
	// Resolver resolves names; nil means the system's.
	Resolver *net.Resolver
	// Roots are the trusted certificate authorities; nil means the system's.
	Roots *x509.CertPool
	// Transport replaces the network in tests.
	Transport http.RoundTripper
}

// NewClient returns a client with connections of its own. CloseIdleConnections ends them.
func NewClient(config Config) *http.Client {
	transport := config.Transport
	if transport == nil {
		transport = newTransport(config)
	}
	return &http.Client{
		Timeout:       config.Timeout,
		Transport:     &boundedTransport{transport, config.MaxBody},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport(config Config) *http.Transport {
	dialer := newDialer(config.Networks, config.Resolver)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: config.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: connectTimeout},
	}
}

// boundedTransport bounds the responses.
type boundedTransport struct {
	http.RoundTripper

	maxBody int64
}

// RoundTrip is the inner transport's, with a body that has a bound and ends with the request's context. Of a response with 101, whose
// connection would belong to the caller without any deadline (RFC 9110, section 15.2.2), only the header is left.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if response.StatusCode < http.StatusOK {
		err := response.Body.Close()
		response.Body = http.NoBody
		return response, err
	}
	response.Body = newEndingBody(request.Context(), response.Body)
	if t.maxBody > 0 {
		response.Body = &boundedBody{ReadCloser: response.Body, left: t.maxBody}
	}
	return response, nil
}

// CloseIdleConnections is for http.Client's.
func (t *boundedTransport) CloseIdleConnections() {
	if inner, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// endingBody is closed when a context ends.
type endingBody struct {
	io.ReadCloser

	ctx  context.Context
	stop func() bool
}

func newEndingBody(ctx context.Context, body io.ReadCloser) *endingBody {
	return &endingBody{body, ctx, context.AfterFunc(ctx, func() { _ = body.Close() })}
}

// Read returns the context's error once that has ended.
func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

type boundedBody struct {
	io.ReadCloser

	left int64
}

// Read reads one byte more than the bound, to tell a body of exactly that size from a larger one.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrBodyTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrBodyTooLarge
	}
	return n, err
}

// RetryAfter parses the seconds or the date of Retry-After (RFC 9110, section 10.2.3). It is 0 for a header that is missing, malformed
// or in the past.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
