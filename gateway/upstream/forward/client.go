// Package forward sends the requests of clients to core, and reads core's responses.
//
// Both are built from allowlists of headers; no other header passes. The package owns the timeouts, the retry rule, the
// cancellation when a client disconnects, and the streaming of long responses.
package forward

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/gateway/upstream/cores"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

const (
	// maxBufferedBody bounds a response body that is buffered in memory; routes with longer bodies stream.
	maxBufferedBody = 1 << 20
	// maxUnstreamedBody is the longest body of known length that a streaming route buffers: it fits into the kernel's send
	// buffer, so the connection to core is free before the client has read it.
	maxUnstreamedBody = 512 << 10
	// recycledBody is the minimum size of a body of a streaming route that is read into a buffer of Recycle.
	recycledBody = 16 << 10
	// idleTimeout closes idle connections to core long before core does (60 s), because a request that is sent while core closes
	// would be lost.
	idleTimeout = 20 * time.Second
	// connWait is how long a request waits for a connection when all are in use.
	connWait = 100 * time.Millisecond
	// dialTimeout is short because core is near.
	dialTimeout = time.Second
	// maxHeaderBytes bounds the header of a response.
	maxHeaderBytes = 16 << 10
)

var (
	// ErrUnreachable means that no core could be reached. Nothing was sent.
	ErrUnreachable = errors.New("core is unreachable, see GATEWAY_CORE_URL")
	// errCoreRemoved means that the core was removed from the set after it was picked. Nothing was sent.
	errCoreRemoved = fmt.Errorf("%w: its name no longer resolves to this address", ErrUnreachable)
	// ErrBusy means that all connections to core were in use for connWait. Nothing was sent.
	ErrBusy = errors.New("all GATEWAY_CORE_MAX_CONNS connections to core are in use")
	// ErrTimeout means that core did not respond in time. It may have executed the request.
	ErrTimeout = errors.New("core did not answer within GATEWAY_CORE_TIMEOUT")
	// ErrBroken means that core's response broke off or was invalid. Core may have executed the request.
	ErrBroken = errors.New("core's response broke off or was invalid")
	// ErrClientGone means that the client disconnected. Core may have executed the request.
	ErrClientGone = errors.New("the client disconnected")
)

// Options are the client's settings; all must be set.
type Options struct {
	Cores *cores.Set
	// Secret proves to core that a request comes from a gateway.
	Secret telemetry.Secret
	// Timeout bounds a complete exchange, dials and retries included. If the response streams, it bounds the wait for the header and each
	// wait for more of the body.
	Timeout time.Duration
	// MaxConns bounds each of a core's pools: those for requests with a key whose response may stream, for other requests with
	// a key, and for requests without one.
	MaxConns int
	Metrics  prometheus.Registerer
}

// Client is safe for concurrent use.
//
// It speaks HTTP/1.1 over its own pools and reads responses with fasthttp's parser. fasthttp's clients report neither whether an
// attempt sent anything nor to which core, so they cannot implement the retry rule; they also take several times the CPU time.
type Client struct {
	cores *cores.Set
	pools *cores.PerCore[*pools]
	// secret is the header line with the shared secret.
	secret        string
	timeout       time.Duration
	retries       prometheus.Counter
	batched       prometheus.Histogram
	streamMetrics streamMetrics

	// requestBuffers holds encoded requests, bodies long bodies.
	requestBuffers, bodies sync.Pool
}

// pools are those of one core: one for short exchanges, one for those that may stream, and one for requests without a key.
// Anyone can send the latter, so they must not take the connections of the others.
type pools struct {
	short, streamed, keyless pool
	group                    *group
	metrics                  []prometheus.Collector
}

// close closes the idle connections now and the others when they are returned.
func (l *pools) close() {
	l.short.close()
	l.streamed.close()
	l.keyless.close()
}

// of returns the pool for a request.
func (l *pools) of(r *Request) *pool {
	switch {
	case r.Verdict == nil:
		return &l.keyless
	case r.Stream:
		return &l.streamed
	default:
		return &l.short
	}
}

// New creates a client. It opens no connection before the first request.
func New(o Options) *Client {
	c := &Client{
		cores:   o.Cores,
		secret:  wire.HeaderGatewaySecret + ": " + o.Secret.Reveal() + "\r\n",
		timeout: o.Timeout,
		retries: promauto.With(o.Metrics).NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_core_retries_total",
			Help: "Requests sent to a core a second time after the first attempt broke off. A rise means that cores close connections in use.",
		}),
		batched: promauto.With(o.Metrics).NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_gateway_core_batch_requests",
			Help:    "Requests that were sent to a core together, by batch. Requests that were sent alone are not counted.",
			Buckets: []float64{2, 4, 8, 16, 32, wire.MaxBatchRequests},
		}),
		streamMetrics: newStreamMetrics(o.Metrics),
	}
	c.requestBuffers.New = func() any { return new([]byte) }
	c.pools = cores.For(o.Cores, func(core *cores.Core) *pools {
		dial := dialer{cores: o.Cores, core: core, tls: o.Cores.TLS(core)}.dial
		l := &pools{
			short: pool{dial: dial, maxConns: o.MaxConns}, streamed: pool{dial: dial, maxConns: o.MaxConns}, keyless: pool{dial: dial, maxConns: o.MaxConns},
			group: &group{client: c, core: core, ofAccount: map[string]int{}},
		}
		l.metrics = []prometheus.Collector{
			telemetry.Pool("gateway", core.Address+" short", l.short.state),
			telemetry.Pool("gateway", core.Address+" streamed", l.streamed.state),
			telemetry.Pool("gateway", core.Address+" open", l.keyless.state),
		}
		o.Metrics.MustRegister(l.metrics...)
		return l
	}, func(_ *cores.Core, l *pools) {
		l.close()
		for _, m := range l.metrics {
			o.Metrics.Unregister(m)
		}
	})
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.pools.Each((*pools).close) }
