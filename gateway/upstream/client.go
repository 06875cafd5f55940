// Package upstream is the gateway's exchange with core: the pools of connections to each core, and the one loop that sends a request
// to one core after another.
//
// It owns the timeouts, the retry rule, the cancellation when a client disconnects, the batches, and the streaming of long responses.
// Which cores there are and which gets the next attempt is package cores'. Requests and responses of clients are built from allowlists
// of headers; no other header passes.
package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

var (
	// ErrUnreachable means that no core could be reached. Nothing was carried out.
	ErrUnreachable = errors.New("core is unreachable, see GATEWAY_CORE_URL")
	// ErrBusy means that all connections to core were in use for as long as the request could wait. Nothing was sent.
	ErrBusy = errors.New("all GATEWAY_CORE_MAX_CONNS connections to core are in use")
	// ErrTimeout means that core did not respond in time. It may have executed the request.
	ErrTimeout = errors.New("core did not answer within GATEWAY_CORE_TIMEOUT")
	// ErrBroken means that core's response broke off or was invalid. Core may have executed the request.
	ErrBroken = errors.New("core's response broke off or was invalid")
	// ErrClientGone means that the client disconnected. Core may have executed the request.
	ErrClientGone = errors.New("the client disconnected")
)

// Options are the client's settings; all must be set unless said otherwise.
type Options struct {
	// URLs are base URLs, http or https, without a path; 1 to cores.MaxCores, all different. A host name stands for one core per
	// address.
	URLs []*url.URL
	// Resolve returns the addresses of a name; nil for the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Secret proves to core that a request or a probe comes from a gateway.
	Secret telemetry.Secret
	// TLS is the configuration for https cores; nil for the system's certificate authorities.
	TLS *tls.Config
	// Timeout bounds a complete exchange, dials and retries included. If the response streams, it bounds the wait for the header and each
	// wait for more of the body.
	Timeout time.Duration
	// MaxConns bounds each of a core's pools: those for requests with a key whose response may stream, for other requests with
	// a key, for requests without one, and for the gateway's own.
	MaxConns int
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Client is safe for concurrent use.
//
// It speaks HTTP/1.1 over its own pools and reads responses with fasthttp's parser. fasthttp's clients report neither whether an
// attempt sent anything nor to which core, so they cannot implement the retry rule; they also take several times the CPU time.
type Client struct {
	cores *cores.Set
	// secret is the header line with the shared secret.
	secret        string
	timeout       time.Duration
	tls           *tls.Config
	maxConns      int
	registry      prometheus.Registerer
	retries       prometheus.Counter
	batched       prometheus.Histogram
	streamMetrics streamMetrics

	// requestBuffers holds encoded requests, bodies long bodies.
	requestBuffers, bodies sync.Pool
}

// New creates a client of cores that are all up. It opens no connection before the first request.
func New(o Options) *Client {
	c := &Client{
		secret:  wire.HeaderGatewaySecret + ": " + o.Secret.Reveal() + "\r\n",
		timeout: o.Timeout, tls: o.TLS, maxConns: o.MaxConns, registry: o.Metrics,
		retries: promauto.With(o.Metrics).NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_core_retries_total",
			Help: "Second and further sends of requests: after an attempt that broke off, that core refused, or that a proxy answered in core's place, and " +
				"those of the gateway's own also after one that timed out or got a status of 500 or above. A rise means that cores close connections in use, or fail.",
		}),
		batched: promauto.With(o.Metrics).NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_gateway_core_batch_requests",
			Help:    "Requests that were sent to a core together, by batch. Requests that were sent alone are not counted.",
			Buckets: []float64{2, 4, 8, 16, 32, wire.MaxBatchRequests},
		}),
		streamMetrics: newStreamMetrics(o.Metrics),
	}
	c.requestBuffers.New = func() any { return new([]byte) }
	c.cores = cores.New(cores.Options{URLs: o.URLs, Resolve: o.Resolve, Connect: c.connect, Log: o.Log, Metrics: o.Metrics})
	return c
}

// Cores is the set of cores.
func (c *Client) Cores() *cores.Set { return c.cores }

// Run probes the cores and resolves their names until ctx ends.
func (c *Client) Run(ctx context.Context) { c.cores.Run(ctx) }

// Close closes idle connections.
func (c *Client) Close() { c.cores.Close() }
