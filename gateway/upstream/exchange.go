package upstream

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tracing"
)

// maxAttempts bounds how often a client's request is sent, so that its load on failing cores is at most doubled.
const maxAttempts = 2

var (
	// errUpstreamDown means that the wait ended because the core is down and another one is up.
	errUpstreamDown = errors.New("the core is down")
	// errNoTime means that the request's deadline left this core too little time to be reached, which says nothing of the core.
	errNoTime = fmt.Errorf("%w: no time was left to send the request", ErrUnreachable)
	// errSecretRejected means that the core rejected the shared secret, so it carried nothing out. The probe logs why.
	errSecretRejected = fmt.Errorf("%w: it rejects GATEWAY_CORE_SECRET", ErrUnreachable)
	// errInvalidResponse means that core's response cannot be forwarded. A retry would not change it.
	errInvalidResponse = fmt.Errorf("%w", ErrBroken)
)

// attemptOptions are the rules of one attempt.
type attemptOptions struct {
	// ctx aborts the attempt. It never ends for a client's request.
	ctx   context.Context
	began time.Time
	// deadline bounds the dial, the wait for the response, and the complete response unless it streams. All attempts of a client's
	// request share it.
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
	ctx, deadline := r.context(), r.deadline(c.timeout)
	options := attemptOptions{ctx: ctx, began: r.Began, deadline: deadline, replayable: r.IsReplayable(), peer: r.Peer}
	var tried Tried
	failed, sent, retried := ErrUnreachable, 0, 0
	for began := r.Began; began.Before(deadline); began = time.Now() {
		core := c.cores.Pick(tried)
		if core == nil {
			return failed
		}
		if sent > retried {
			c.retries.Inc()
			retried = sent
		}
		setCore(span, core, sent)
		if r.own != nil {
			options.deadline = r.own.nextAttempt(r, began, deadline, c.cores.OtherUp(core))
		}
		err := c.attemptAt(core, r, response, span, buffer, options)
		switch {
		case err == nil && !r.isUnserved(response):
			return nil
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errBatchRejected):
			options.newConn = true // alone
			continue
		case errors.Is(err, ErrClientGone), errors.Is(err, ErrBusy) && r.own == nil, errors.Is(err, errInvalidResponse):
			return err
		case errors.Is(err, ErrUnreachable), errors.Is(err, ErrBusy): // nothing was carried out
			core.markUnsent(err)
			tried.Exclude(core)
			if sent == 0 {
				failed = err
			}
			continue
		}
		sent++
		if failed = err; err == nil { // the response stands unless another core has a better one
			tried.Exclude(core)
			continue
		}
		switch {
		case errors.Is(err, errUpstreamDown):
			failed = ErrTimeout
		case errors.Is(err, ErrTimeout) && !r.hadTime(began, options.deadline, deadline):
			core.ProbeNow()
		default:
			core.MarkFailed()
		}
		if !options.replayable || r.own == nil && sent == maxAttempts {
			return failed
		}
		tried.MarkFailed(core)
		options.newConn = true
	}
	return failed
}

// exchange is one attempt at one core, until the end of the response's body.
type exchange struct {
	core *Core
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
func (c *Client) attemptAt(core *Core, r *Request, response *Response, span trace.Span, buffer *[]byte, options attemptOptions) error {
	if r.mayBatch(core, options) {
		return core.pools.group.do(r, response, span, buffer, options)
	}
	*buffer = c.appendRequest((*buffer)[:0], r, core.URL.Host, span)
	return c.attempt(core, r, *buffer, options, response)
}

// attempt is one attempt at one core, alone.
func (c *Client) attempt(core *Core, r *Request, request []byte, options attemptOptions, response *Response) error {
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
	for {
		conn, err := x.core.pools.of(r).get(options.ctx, options.newConn, options.deadline)
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
