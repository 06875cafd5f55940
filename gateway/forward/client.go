// Package forward carries a request that may pass to core and core's answer back.
//
// Both are built anew from lists of what may cross; a client's request and core's answer are never passed on as they
// came. It owns the deadlines, the rule for what may be sent twice, and the streaming of long answers.
package forward

import (
	"errors"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"

	"intents.internal/pkg/telemetry"
)

const (
	// maxBufferedAnswer bounds an answer that is held in memory whole; routes with longer ones stream.
	maxBufferedAnswer = 1 << 20
	// maxWholeAnswer is up to how long the answer of a route that streams is held whole all the same: one write brings it
	// to the client, and the connection to core is free before the client has read it.
	maxWholeAnswer = 16 << 10
	// idleTimeout closes connections to core that nobody uses, long before core does (60 s): a request that leaves just
	// as core closes would be lost.
	idleTimeout = 20 * time.Second
	// connWait is how long a request may wait for one of the connections when all are in use.
	connWait = 100 * time.Millisecond
	// dialTimeout is short because core is near; a core that cannot be reached is known so in this time.
	dialTimeout = time.Second
	// headerBuffer bounds the header block of core's answers.
	headerBuffer = 16 << 10
)

var (
	// ErrUnreachable says that core could not be reached: nothing was sent.
	ErrUnreachable = errors.New("core cannot be reached")
	// ErrBusy says that every connection to core was in use for too long: nothing was sent.
	ErrBusy = errors.New("all connections to core are in use")
	// ErrTimeout says that core did not answer in time. It may have carried the request out.
	ErrTimeout = errors.New("core did not answer in time")
	// ErrBroken says that core's answer broke off or made no sense. It may have carried the request out.
	ErrBroken = errors.New("core's answer broke off")
)

// Options are the client's settings; all must be set.
type Options struct {
	// Core is the base URL, without a path.
	Core *url.URL
	// Secret proves to core that a request comes from a gateway.
	Secret telemetry.Secret
	// Timeout bounds a whole exchange whose answer is not streamed, retries included, and each wait for the next bytes
	// of one that is.
	Timeout time.Duration
	// MaxConns bounds the connections of each kind: those for streamed answers and those for the others.
	MaxConns int
	Metrics  prometheus.Registerer
}

// Client is safe for concurrent use.
type Client struct {
	buffered, streamed *fasthttp.HostClient

	scheme  string
	host    string
	secret  string
	timeout time.Duration
	retries prometheus.Counter
}

// New makes a client. It opens no connection until the first request.
func New(o Options) *Client {
	c := &Client{
		scheme:  o.Core.Scheme,
		host:    o.Core.Host,
		secret:  o.Secret.Reveal(),
		timeout: o.Timeout,
		retries: promauto.With(o.Metrics).NewCounter(prometheus.CounterOpts{
			Name: "gateway_core_retries_total",
			Help: "Requests sent to core a second time after the first attempt broke off. A rise means that core closes connections in use.",
		}),
	}
	c.buffered = c.hostClient(o)
	c.buffered.MaxResponseBodySize = maxBufferedAnswer
	c.streamed = c.hostClient(o)
	c.streamed.StreamResponseBody = true
	c.streamed.DialTimeout = c.dialStream
	return c
}

func (c *Client) hostClient(o Options) *fasthttp.HostClient {
	return &fasthttp.HostClient{
		Addr:                      address(o.Core),
		IsTLS:                     o.Core.Scheme == "https",
		DialTimeout:               dial,
		MaxConns:                  o.MaxConns,
		MaxConnWaitTimeout:        connWait,
		MaxIdleConnDuration:       idleTimeout,
		ConnPoolStrategy:          fasthttp.LIFO, // the fewest connections stay warm
		MaxIdemponentCallAttempts: 2,
		RetryIfErr:                c.retry,
		ReadBufferSize:            headerBuffer,
		NoDefaultUserAgentHeader:  true,
		DisablePathNormalizing:    true,
		// Header names are canonical already, here and as core's net/http writes them.
		DisableHeaderNamesNormalizing: true,
		SecureErrorLogMessage:         true,
	}
}

// Close drops idle connections.
func (c *Client) Close() {
	c.buffered.CloseIdleConnections()
	c.streamed.CloseIdleConnections()
}

func address(core *url.URL) string {
	if core.Port() != "" {
		return core.Host
	}
	if core.Scheme == "https" {
		return net.JoinHostPort(core.Hostname(), "443")
	}
	return net.JoinHostPort(core.Hostname(), "80")
}

// retry decides whether a request whose first attempt broke off may be sent again. Only one that core cannot carry out
// twice may: a read, or a write that core knows again by its Idempotency-Key.
func (c *Client) retry(request *fasthttp.Request, _ int, err error) (resetTimeout, again bool) {
	if isTimeout(err) || errors.Is(err, fasthttp.ErrBodyTooLarge) {
		return false, false
	}
	h := &request.Header
	if !h.IsGet() && !h.IsHead() && len(h.Peek(headerIdempotencyKey)) == 0 {
		return false, false
	}
	c.retries.Inc()
	return false, true
}

// dialError marks what went wrong before anything could be sent.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func dial(address string, timeout time.Duration) (net.Conn, error) {
	if timeout <= 0 || timeout > dialTimeout {
		timeout = dialTimeout
	}
	conn, err := fasthttp.DialDualStackTimeout(address, timeout)
	if err != nil {
		return nil, dialError{err}
	}
	return conn, nil
}

func (c *Client) dialStream(address string, timeout time.Duration) (net.Conn, error) {
	conn, err := dial(address, timeout)
	if err != nil {
		return nil, err
	}
	return &streamConn{Conn: conn, patience: c.timeout}, nil
}

// streamConn bounds each wait for more bytes instead of the whole answer, which may rightly take long, and makes an
// answer that stops short an error: fasthttp takes a connection that closes between two chunks for the body's end.
type streamConn struct {
	net.Conn
	patience time.Duration
}

func (c *streamConn) Read(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// SetReadDeadline does nothing: Read sets its own.
func (c *streamConn) SetReadDeadline(time.Time) error { return nil }

// classify turns fasthttp's error into one of this package's.
func classify(err error) error {
	var unsent dialError
	switch {
	case errors.As(err, &unsent):
		return ErrUnreachable
	case errors.Is(err, fasthttp.ErrNoFreeConns):
		return ErrBusy
	case isTimeout(err):
		return ErrTimeout
	default:
		return ErrBroken
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
