package forward

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/upstream/cores"
	"intents.internal/pkg/wire"
)

const (
	// maxAttempts bounds how often a replayable request is sent.
	maxAttempts = 2
	// maxInterim bounds the 1xx responses before the final one.
	maxInterim = 8
	// maxTrailers bounds the trailer lines after the last chunk.
	maxTrailers = 16
)

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

// roundTrip sends the request to a core and reads the response, without its body if it streams. Its errors are those of this
// package. The buffer is for the encoded request.
//
// A request that could not be sent, or was rejected with the shared secret, goes to the next core. A request that was sent and not
// answered is retried once, at another core if there is one, and only if it is replayable: a read, or a write with an
// Idempotency-Key on a route where core honors it. All attempts together end at one deadline. Only a core's own failure ejects it: the end of a deadline that other attempts
// had used up triggers a probe.
func (c *Client) roundTrip(r *Request, buffer *[]byte) error {
	options := attemptOptions{began: r.Began, deadline: r.Began.Add(c.timeout), replayable: r.IsReplayable(), peer: r.Peer}
	var tried cores.Tried
	failed := ErrUnreachable
	for sent, attempt, began := 0, 0, r.Began; ; attempt++ {
		if attempt > 0 {
			if began = time.Now(); !began.Before(options.deadline) {
				return failed
			}
		}
		core := c.cores.Pick(tried)
		if core == nil {
			return failed
		}
		span := r.startAttemptSpan(core, attempt)
		*buffer = c.appendRequest((*buffer)[:0], r, core.URL.Host, span)
		core.Begin()
		err := errCoreRemoved
		if u, ok := c.upstreams.Get(core); ok {
			err = c.attempt(u, r, *buffer, options)
		}
		if r.stream == nil { // else the exchange ends with the body
			core.End()
		}
		r.endAttemptSpan(span, err)
		switch {
		case err == nil:
			return nil
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
		case errors.Is(err, ErrTimeout) && options.deadline.Sub(began) < c.timeout/2:
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

// IsWrite reports whether the request may change something.
func (r *Request) IsWrite() bool {
	h := &r.Ctx.Request.Header
	return !h.IsGet() && !h.IsHead()
}

// IsReplayable reports whether core may get the request twice without harm: a read, or a write that core carries out once.
func (r *Request) IsReplayable() bool {
	return !r.IsWrite() || r.HonorsIdempotencyKey && len(r.Ctx.Request.Header.Peek(headerIdempotencyKey)) > 0
}

// attempt is one attempt at one core.
func (c *Client) attempt(u *upstream, r *Request, request []byte, options attemptOptions) error {
	for {
		conn, err := u.pool(r).get(options.newConn, options.deadline)
		if err != nil {
			return err
		}
		if err = conn.send(request, options); err == nil {
			// Other runnable goroutines run first. The response may arrive meanwhile, so the read need not block.
			runtime.Gosched()
			return c.readResponse(conn, r)
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

// readResponse reads the response, and returns the connection to the pool unless the body streams from it.
func (c *Client) readResponse(from *coreConn, r *Request) error {
	head, _ := c.headers.Get().(*fasthttp.ResponseHeader)
	defer func() {
		if r.stream == nil { // else the stream owns the header
			c.headers.Put(head)
		}
	}()
	err := from.readHead(head)
	if err == nil {
		err = c.setResponse(from, head, r)
	}
	switch {
	case err != nil:
		cause := from.wrapErr(err)
		from.discard()
		return cause
	case r.stream != nil:
		return nil // the exchange ends with the body
	}
	r.Ended = time.Now()
	from.release(r.Ended, head.ConnectionClose())
	return nil
}

// readHead reads the status and headers of the final response.
func (c *coreConn) readHead(h *fasthttp.ResponseHeader) error {
	h.Reset()
	h.SetNoDefaultContentType(true) // otherwise fasthttp sends its default content type
	for range maxInterim {
		if err := c.awaitResponse(); err != nil {
			return err
		}
		if err := h.Read(c.reader); err != nil {
			return err
		}
		if status := h.StatusCode(); status >= fasthttp.StatusOK {
			return nil
		}
	}
	return errInvalidResponse
}

// setResponse sets the client's response from core's.
func (c *Client) setResponse(from *coreConn, head *fasthttp.ResponseHeader, r *Request) error {
	to, length := &r.Ctx.Response, head.ContentLength()
	switch {
	case hasNoBody(head, r):
		// Only session routes have a 401 of their own.
		if head.StatusCode() == fasthttp.StatusUnauthorized && !r.Session {
			return errSecretRejected
		}
		to.SkipBody = true
		if r.Ctx.IsHead() {
			to.Header.SetContentLength(length)
		}
	case length < chunked:
		return errInvalidResponse // a body that ends with the connection may be truncated
	case r.Stream && (length == chunked || length > maxUnstreamedBody) && head.StatusCode() != fasthttp.StatusUnauthorized:
		r.stream = from.newStream(head, c.timeout, &c.streamMetrics)
		return nil
	default:
		if err := c.readBody(r, from.reader, length); err != nil {
			to.ResetBody()
			return err
		}
		if head.StatusCode() == fasthttp.StatusUnauthorized && wire.CodeOf(to.Body()) == wire.NotAGateway {
			to.ResetBody()
			return errSecretRejected
		}
		if r.Poll {
			r.PollWait = pollWait(head)
		}
	}
	copyResponseHeaders(&to.Header, head, r.Session)
	return nil
}

// pollWait returns how long core allows the response to be held back: a whole number of seconds, 0 for none.
func pollWait(head *fasthttp.ResponseHeader) time.Duration {
	seconds, err := strconv.ParseUint(string(head.Peek(wire.HeaderPollWait)), 10, 8)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// hasNoBody reports whether no body follows the header, regardless of the header fields.
func hasNoBody(head *fasthttp.ResponseHeader, r *Request) bool {
	status := head.StatusCode()
	return r.Ctx.IsHead() || status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified
}
