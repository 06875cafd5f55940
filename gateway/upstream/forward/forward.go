package forward

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/keys"
	"intents.internal/gateway/upstream/cores"
	"intents.internal/pkg/tracing"
)

// maxAttempts bounds how often a replayable request is sent.
const maxAttempts = 2

var (
	// errUpstreamDown means that the wait ended because the core is down and another one is up.
	errUpstreamDown = errors.New("the core is down")
	// errNoTime means that the request's deadline left this core too little time to be reached, which says nothing of the core.
	errNoTime = fmt.Errorf("%w: GATEWAY_CORE_TIMEOUT ended before the request was sent", ErrUnreachable)
	// errSecretRejected means that the core rejected the shared secret, so it carried nothing out. The probe logs why.
	errSecretRejected = fmt.Errorf("%w: it rejects GATEWAY_CORE_SECRET", ErrUnreachable)
	// errInvalidResponse means that core's response cannot be forwarded. A retry would not change it.
	errInvalidResponse = errors.New("core's response is invalid")
)

// Request is a client's request to core. Do does not use it after it returns.
type Request struct {
	// Client is the request as the client sent it. Its method, body and the headers of the allowlist are forwarded.
	Client *fasthttp.Request
	// Target is the path and query, sent unchanged.
	Target []byte
	// ID is the request id.
	ID []byte
	// Span is the request's span, nil for none. If it does not record, core gets its trace context unchanged. End it after the
	// body of a streamed response, whose failure it records.
	Span trace.Span
	// Route is the path template, for span names.
	Route string
	// Began is when the request is passed to Do.
	Began time.Time
	// ClientIP is the client's address as text, Proto the scheme it used.
	ClientIP []byte
	Proto    string
	// Verdict is the identity sent to core, nil on routes without a key.
	Verdict *keys.Verdict
	// Session passes cookies, and the headers that protect them, in both directions.
	Session bool
	// HonorsIdempotencyKey is set if core executes a write with the same Idempotency-Key on this route only once.
	HonorsIdempotencyKey bool
	// Peer is the client's connection, nil if it cannot be watched.
	Peer Peer
	// Stream allows a long response to be streamed, in bounded memory.
	Stream bool
	// Batch allows the request to be sent to core together with others that may be. Account is whose share of a batch it takes.
	Batch   bool
	Account string
	// MinTimeout replaces a shorter Options.Timeout; zero for none.
	MinTimeout time.Duration
}

// Peer is the client's connection.
type Peer interface {
	// Disconnected reports whether the client has closed its connection. Do calls it every checkInterval while core has not
	// responded.
	Disconnected() bool
}

// IsWrite reports whether the request may change something.
func (r *Request) IsWrite() bool {
	h := &r.Client.Header
	return !h.IsGet() && !h.IsHead()
}

// IsReplayable reports whether core may get the request twice without harm: a read, or a write that core carries out once.
func (r *Request) IsReplayable() bool {
	return !r.IsWrite() || r.HonorsIdempotencyKey && len(r.Client.Header.Peek(headerIdempotencyKey)) > 0
}

// attemptOptions are the rules of one attempt.
type attemptOptions struct {
	began time.Time
	// deadline bounds the dial, the wait for the response, and the complete response unless it streams. All attempts share it.
	deadline time.Time
	// replayable requests may be executed twice without harm.
	replayable bool
	// newConn excludes idle connections.
	newConn bool
	peer    Peer
}

// Do sends the request to a core and reads its response. Its errors are ErrUnreachable, ErrBusy, ErrTimeout, ErrBroken and
// ErrClientGone.
//
// If a response streams, Do returns once its header has arrived. If the body fails later, the caller must close the client's
// connection before the body's end, so that the client does not mistake a part for the whole.
//
// A request that could not be sent, or was rejected with the shared secret, goes to the next core. A request that was sent and not
// answered is retried once, at another core if there is one, and only if it is replayable: a read, or a write with an
// Idempotency-Key on a route where core honors it. All attempts together end at one deadline. Only a core's own failure ejects it: the end of
// a deadline that other attempts had used up triggers a probe.
//
// Requests with Batch that wait for the same core at the same time are sent as one; each has its own response, error and retry.
func (c *Client) Do(r *Request, response *Response) error {
	if r.Span == nil {
		r.Span = tracing.Noop
	}
	response.reset()
	buffer, _ := c.requestBuffers.Get().(*[]byte)
	span := r.startSpan()
	err := c.tryCores(r, response, buffer, span)
	c.requestBuffers.Put(buffer)
	if response.Ended.IsZero() {
		response.Ended, response.Body = time.Now(), response.Body[:0]
	}
	endSpan(span, r.Span, response, err)
	return err
}

// tryCores is Do without its bookkeeping. The buffer is for the encoded request.
func (c *Client) tryCores(r *Request, response *Response, buffer *[]byte, span trace.Span) error {
	timeout := max(c.timeout, r.MinTimeout)
	options := attemptOptions{began: r.Began, deadline: r.Began.Add(timeout), replayable: r.IsReplayable(), peer: r.Peer}
	var tried cores.Tried
	failed := ErrUnreachable
	for sent, first, began := 0, true, r.Began; ; first = false {
		if !first {
			if began = time.Now(); !began.Before(options.deadline) {
				return failed
			}
		}
		core := c.cores.Pick(tried)
		if core == nil {
			return failed
		}
		setCore(span, core, sent)
		err := c.attemptAt(core, r, response, span, buffer, options)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errBatchRejected):
			options.newConn = true // alone
			continue
		case errors.Is(err, ErrBusy), errors.Is(err, ErrClientGone):
			return err
		case errors.Is(err, errNoTime):
			core.ProbeNow()
			tried.MarkUnreachable(core)
			continue
		case errors.Is(err, errSecretRejected):
			core.MarkFailed()
			tried.MarkUnreachable(core)
			continue
		case errors.Is(err, ErrUnreachable):
			core.MarkUnreachable(err)
			tried.MarkUnreachable(core)
			continue
		case errors.Is(err, errInvalidResponse):
			return ErrBroken
		case errors.Is(err, errUpstreamDown):
			failed = ErrTimeout
		case errors.Is(err, ErrTimeout) && options.deadline.Sub(began) < timeout/2:
			core.ProbeNow()
			failed = err
		default:
			core.MarkFailed()
			failed = err
		}
		sent++
		if errors.Is(err, ErrTimeout) || !options.replayable || sent == maxAttempts {
			return failed
		}
		c.retries.Inc()
		tried.MarkFailed(core)
		options.newConn = true
	}
}

// exchange is one attempt at one core, until the end of the response's body.
type exchange struct {
	core *cores.Core
	conn *coreConn // nil without a connection
}

// end ends the exchange. The connection is reused only after a complete response.
func (x *exchange) end(complete bool, now time.Time, closing bool) {
	x.core.End()
	switch {
	case x.conn == nil:
	case complete:
		x.conn.release(now, closing)
	default:
		x.conn.discard()
	}
}

// attemptAt is one attempt at one core, alone or in a batch.
func (c *Client) attemptAt(core *cores.Core, r *Request, response *Response, span trace.Span, buffer *[]byte, options attemptOptions) error {
	if r.mayBatch(core, options) {
		if pools, ok := c.pools.Get(core); ok {
			return pools.group.do(r, response, span, buffer, options)
		}
	}
	*buffer = c.appendRequest((*buffer)[:0], r, core.URL.Host, span, c.secret)
	return c.attempt(core, r, *buffer, options, response)
}

// attempt is one attempt at one core, alone.
func (c *Client) attempt(core *cores.Core, r *Request, request []byte, options attemptOptions, response *Response) error {
	core.Begin()
	x := exchange{core: core}
	err := c.send(&x, r, request, options)
	if err == nil {
		if err = c.read(&x, r, response); err == nil && response.Stream != nil {
			return nil // the exchange ends with the body
		}
	}
	if err == nil {
		response.Ended = time.Now()
	} else if x.conn != nil {
		err = x.conn.wrapErr(err)
	}
	x.end(err == nil, response.Ended, response.Head.ConnectionClose())
	return err
}

// send sends the request on a connection of the exchange, again on a new one if core had closed an idle one.
func (c *Client) send(x *exchange, r *Request, request []byte, options attemptOptions) error {
	pools, ok := c.pools.Get(x.core)
	if !ok {
		return errCoreRemoved
	}
	for {
		conn, err := pools.of(r).get(options.newConn, options.deadline)
		if err != nil {
			return err
		}
		if err = conn.send(request, options); err == nil {
			x.conn = conn
			// Other runnable goroutines run first. The response may arrive meanwhile, so the read need not block.
			runtime.Gosched()
			return nil
		}
		used := conn.used
		conn.discard()
		switch {
		case conn.sent:
			return conn.wrapErr(err)
		case errors.Is(err, errNoTime):
			return err
		case isTimeout(err): // the deadline ended during the write
			return errNoTime
		case !used:
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		options.newConn = true // core had closed the idle connection
	}
}
