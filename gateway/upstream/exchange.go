package upstream

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/tracing"
)

// maxAttempts bounds how often a client's request is sent without an outcome, so that its load on failing cores is at most doubled.
const maxAttempts = 2

var (
	// errUpstreamDown means that the wait for a response ended because the core is down and another one is up.
	errUpstreamDown = errors.New("the core is down")
	// errGivenBack means that the core was ejected before the request was sent there, and another core is up.
	errGivenBack = fmt.Errorf("%w: it was ejected before the request was sent", ErrUnreachable)
	// errNoTime means that the request's deadline left this core too little time to be reached, which says nothing of the core.
	errNoTime = fmt.Errorf("%w: no time was left to send the request", ErrUnreachable)
	// errInvalidResponse means that core's response cannot be forwarded. A retry would not change it.
	errInvalidResponse = fmt.Errorf("%w", ErrBroken)
)

// Do sends the request to a core and reads its response. Its errors are ErrUnreachable, ErrBusy, ErrTimeout, ErrBroken and
// ErrClientGone.
//
// If a response streams, Do returns once its header has arrived. If the body fails later, the caller must close the client's
// connection before the body's end, so that the client does not mistake a part for the whole.
//
// The rule of what is sent again is decide. A request that core has not carried out goes to the next core. One that core may have carried out is
// retried once, at another core if there is one, and only if it is replayable: a read, or a write with an Idempotency-Key on a route where core
// honors it. All attempts together end at one deadline. Only a core's own failure ejects it: the end of a deadline that other attempts had used up
// triggers a probe.
//
// Requests with Batch that wait for the same core at the same time are sent as one, second attempts too, so that a core that fails under load does
// not get 64 requests for one; each has its own response, error and retry. A core that refuses a batch gets none of its requests alone, unless it
// says that it serves no batches: they go to the next core, and with none left they end with ErrUnreachable, of which nothing was carried out.
func (c *Client) Do(r *Request, response *Response) error {
	return c.do(r, c.clientPolicy(r), response)
}

// do is Do by a policy.
func (c *Client) do(r *Request, p policy, response *Response) error {
	if r.Span == nil {
		r.Span = tracing.Noop
	}
	response.reset()
	buffer, _ := c.requestBuffers.Get().(*[]byte)
	span := r.startSpan()
	err := c.tryCores(r, p, response, buffer, span)
	c.requestBuffers.Put(buffer)
	if response.Ended.IsZero() {
		response.Ended, response.Body = time.Now(), response.Body[:0]
	}
	endSpan(span, r.Span, response, err)
	return err
}

// tryCores is do without its bookkeeping. The buffer is for the encoded request.
func (c *Client) tryCores(r *Request, p policy, response *Response, buffer *[]byte, span trace.Span) error {
	options, deadline := p.attempt, p.attempt.deadline
	var tried cores.Tried
	failure, sent, unanswered := ErrUnreachable, 0, 0
	for began := r.Began; began.Before(deadline); began = time.Now() {
		core := c.cores.Pick(tried)
		if core == nil {
			return failure
		}
		setCore(span, core, sent)
		if p.retry.everyCore {
			options.deadline = p.retry.attemptDeadline(began, deadline, core.OtherUp())
		}
		got := c.attemptAt(core, r, response, span, buffer, options)
		if got.sent {
			if sent++; sent > 1 {
				c.retries.Inc()
			}
		}
		if got.isFailure() {
			core.Fail()
		}
		became, err := decide(got, options.replayable)
		if err != nil && options.ctx.Err() != nil {
			return options.ctx.Err()
		}
		switch became {
		case answered:
			if !p.retry.everyCore || response.Status() < fasthttp.StatusInternalServerError {
				return nil
			}
			unanswered++
			failure = nil // the response stands unless another core has a better one
			tried.Exclude(core)
		case final:
			return err
		case noBatches:
			core.SetBatches(false)
			options.alone = true
		case notCarriedOut:
			if errors.Is(err, ErrBusy) && !p.retry.everyCore {
				return err
			}
			markUnsent(core, err)
			tried.Exclude(core)
			if unanswered == 0 {
				failure = err
			}
		case unknown, repeatable:
			unanswered++
			failure = err
			markUnanswered(core, got.err, !errors.Is(err, ErrTimeout) || p.hadTime(began, options.deadline))
			if became == unknown || !p.retry.everyCore && unanswered == maxAttempts {
				return err
			}
			tried.MarkFailed(core)
			options.newConn = true
		}
		p.retry.next(r)
	}
	return failure
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
func (c *Client) attemptAt(core *cores.Core, r *Request, response *Response, span trace.Span, buffer *[]byte, options attemptOptions) attempt {
	if r.mayBatch(core, options) {
		return transportTo(core).group.do(r, response, span, buffer, options)
	}
	*buffer = c.appendRequest((*buffer)[:0], r, core.URL.Host, span)
	return c.attempt(core, r, *buffer, options, response)
}

// attempt is one attempt at one core, alone.
func (c *Client) attempt(core *cores.Core, r *Request, request []byte, options attemptOptions, response *Response) attempt {
	core.Begin()
	x := exchange{core: core}
	got := c.send(&x, request, options)
	if got.err == nil {
		c.read(&x, r, options.maxBody, response, &got)
		if got.err == nil && response.Stream != nil {
			return got // the exchange ends with the body
		}
	}
	complete := got.err == nil && got.by == byCore
	if complete {
		response.Ended = time.Now()
	}
	x.end(complete, response.Ended, response.Head.ConnectionClose())
	return got
}

// send sends the request on a connection of the exchange, again on a new one if core had closed an idle one. It returns no error once the request
// was sent.
func (c *Client) send(x *exchange, request []byte, options attemptOptions) attempt {
	for {
		conn, err := transportTo(x.core).pools[options.pool].get(options.ctx, options.newConn, options.deadline)
		if err != nil {
			return attempt{err: err}
		}
		if err = conn.send(request, options); err == nil {
			x.conn = conn
			// Other runnable goroutines run first. The response may arrive meanwhile, so the read need not block.
			runtime.Gosched()
			return attempt{sent: true}
		}
		used := conn.used
		conn.discard()
		switch {
		case conn.sent:
			return attempt{sent: true, err: conn.wrapErr(err)}
		case errors.Is(err, errNoTime):
			return attempt{err: err}
		case isTimeout(err): // the deadline ended during the write
			return attempt{err: errNoTime}
		case !used:
			return attempt{err: fmt.Errorf("%w: %w", ErrUnreachable, err)}
		}
		options.newConn = true // core had closed the idle connection
	}
}
