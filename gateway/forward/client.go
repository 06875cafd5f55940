// Package forward carries a request that may pass to core and core's answer back.
//
// Both are built anew from lists of what may cross; a client's request and core's answer are never passed on as they
// came. It owns the deadlines, the rule for what may be sent twice and to which core, the end of an exchange whose client
// has left, and the streaming of long answers.
package forward

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

const (
	// maxBufferedAnswer bounds an answer that is held in memory whole; routes with longer ones stream.
	maxBufferedAnswer = 1 << 20
	// maxWholeAnswer is up to how long an answer that may stream is held whole all the same, where its length is known: the
	// kernel takes it at once, and the connection to core is free before the client has read it.
	maxWholeAnswer = 512 << 10
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
	// ErrUnreachable says that no core could be reached: nothing was sent.
	ErrUnreachable = errors.New("core cannot be reached")
	// errLeft says that between the choice of the core and the attempt its address has left its name: nothing was sent.
	errLeft = fmt.Errorf("%w: its name no longer has this address", ErrUnreachable)
	// ErrBusy says that every connection to core was in use for too long: nothing was sent.
	ErrBusy = errors.New("all connections to core are in use")
	// ErrTimeout says that core did not answer in time. It may have carried the request out.
	ErrTimeout = errors.New("core did not answer in time")
	// ErrBroken says that core's answer broke off or made no sense. It may have carried the request out.
	ErrBroken = errors.New("core's answer broke off")
	// ErrClientGone says that the client has left, and that nobody waits for the answer. Core may have carried the request
	// out.
	ErrClientGone = errors.New("the client has left")
)

// Options are the client's settings; all must be set.
type Options struct {
	Cores *cores.Set
	// Secret proves to core that a request comes from a gateway.
	Secret telemetry.Secret
	// Timeout bounds a whole exchange whose answer is not streamed, retries included. Of one that is, it bounds the wait
	// for the answer's beginning, and each wait for the next bytes.
	Timeout time.Duration
	// MaxConns bounds the connections to each core, of each kind: those for requests with a key whose answer may stream, for
	// the others with a key, and for those without one.
	MaxConns int
	Metrics  prometheus.Registerer
}

// Client is safe for concurrent use.
//
// It speaks HTTP/1.1 over pools of its own. fasthttp's clients know neither which attempt has sent something nor which core
// that was, so they can keep no rule about what is sent twice; and they take several times the CPU time to find a
// connection, build the request and move the answer from buffer to buffer. Answers are still read by fasthttp's parser.
type Client struct {
	cores *cores.Set
	links *cores.PerCore[*link]
	// secret is the header line that proves who asks.
	secret  string
	timeout time.Duration
	retries prometheus.Counter
	streams streams

	// texts and heads are used again: requests as they are sent, and the heads of answers.
	texts, heads sync.Pool
}

// link is the way to one core: a pool for the exchanges that are short, one for those that may stream, and one for requests
// without a key, which anyone can make and which must leave the others their connections.
type link struct {
	core                  *cores.Core
	short, streamed, open pool
	metrics               []prometheus.Collector
}

// close drops the idle connections, and from then on those that come back.
func (l *link) close() {
	l.short.close()
	l.streamed.close()
	l.open.close()
}

func (l *link) pool(r *Request) *pool {
	switch {
	case r.Verdict == nil:
		return &l.open
	case r.Stream:
		return &l.streamed
	default:
		return &l.short
	}
}

// New makes a client. It opens no connection until the first request.
func New(o Options) *Client {
	c := &Client{
		cores:   o.Cores,
		secret:  wire.HeaderGatewaySecret + ": " + o.Secret.Reveal() + "\r\n",
		timeout: o.Timeout,
		retries: promauto.With(o.Metrics).NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_core_retries_total",
			Help: "Requests sent to a core a second time after the first attempt broke off. A rise means that cores close connections in use.",
		}),
		streams: newStreams(o.Metrics),
	}
	c.texts.New = func() any { return new([]byte) }
	c.heads.New = func() any { return &fasthttp.ResponseHeader{} }
	c.links = cores.For(o.Cores, func(core *cores.Core) *link {
		dial := dialer{cores: o.Cores, core: core, tls: o.Cores.TLS(core)}.dial
		l := &link{
			core:  core,
			short: pool{dial: dial, most: o.MaxConns}, streamed: pool{dial: dial, most: o.MaxConns}, open: pool{dial: dial, most: o.MaxConns},
		}
		l.metrics = []prometheus.Collector{
			telemetry.Pool("gateway", core.Address+" short", l.short.state),
			telemetry.Pool("gateway", core.Address+" streamed", l.streamed.state),
			telemetry.Pool("gateway", core.Address+" open", l.open.state),
		}
		o.Metrics.MustRegister(l.metrics...)
		return l
	}, func(_ *cores.Core, l *link) {
		l.close()
		for _, m := range l.metrics {
			o.Metrics.Unregister(m)
		}
	})
	return c
}

// Close drops idle connections.
func (c *Client) Close() { c.links.All((*link).close) }
