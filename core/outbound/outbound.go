// Package outbound is the policy of core's requests to other services: receivers of webhooks, nodes of chains, providers of quotes, the
// OpenID Connect provider and the mail server.
//
// It owns which addresses are dialled, TLS, the time limits, and the bounds of idle connections; package transport bounds the responses.
// The clients of HTTP follow no redirect, which would carry credentials to another host, and use no proxy of the environment, which would
// hide the dialled address. How often a service is called and what a response means is the caller's.
package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strconv"
	"time"

	"intents.internal/pkg/transport"
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

// Config is what differs between the services that are called.
type Config struct {
	// Networks are the addresses that may be dialled; nil allows all, for services that the operator names.
	Networks *Networks
	// Timeout bounds a request until its body is read; 0 means no bound but the request's context.
	Timeout time.Duration
	// MaxBody bounds the bytes of a body that can be read, after decompression; 0 means no bound. See transport.ErrBodyTooLarge.
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
	inner := config.Transport
	if inner == nil {
		inner = newTransport(config)
	}
	return &http.Client{
		Timeout:       config.Timeout,
		Transport:     transport.Bound(inner, config.MaxBody),
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
