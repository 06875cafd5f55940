package forward

import (
	"bufio"
	"errors"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
)

const (
	// maxAttempts is how often a request may be sent where it may be sent again at all.
	maxAttempts = 2
	// maxInterim bounds the answers 1xx before the proper one.
	maxInterim = 8
	// maxTrailers bounds the lines after the last chunk of an answer.
	maxTrailers = 16
)

var (
	// errAbandoned says that a core was given up because it answers nothing else either, and another one does.
	errAbandoned = errors.New("the core does not answer")
	// errUnfit says that core's answer is one that cannot be passed on, and would not be another time either.
	errUnfit = errors.New("core's answer cannot be passed on")
)

// terms are what one exchange may do.
type terms struct {
	began time.Time
	// deadline ends the wait for the answer, and for all of it unless it streams.
	deadline time.Time
	// repeatable requests can be carried out twice without harm.
	repeatable bool
	// fresh says that no connection may be used that has been idle.
	fresh bool
	peer  Peer
}

// exchange sends the request to a core and reads its answer into the client's: whole, or if it is a long one of a route
// that streams, up to its body. Its errors are those of this package. The text is where the request is put together.
//
// What could not be sent goes to the next core at once, whatever it is. What was sent and not answered is sent again only
// if no core can carry it out twice: a read, or a write with an Idempotency-Key on a route where core honors it; and once
// only, to another core if there is one.
func (c *Client) exchange(r *Request, text *[]byte) error {
	t := terms{began: r.Began, deadline: r.Began.Add(c.timeout), repeatable: r.isRepeatable(), peer: r.Peer}
	var tried cores.Tried
	failed := ErrUnreachable
	for sent, attempt := 0, 0; ; attempt++ {
		core := c.cores.Pick(tried)
		if core == nil {
			return failed
		}
		span := r.startAttempt(core, attempt)
		*text = c.appendRequest((*text)[:0], r, core.URL.Host, span)
		core.Begin()
		err := errLeft
		if l, ok := c.links.Of(core); ok {
			err = c.try(l, r, *text, t)
		}
		if err != nil || !r.Ctx.Response.IsBodyStream() { // else the end of the body is the end of the exchange
			core.End()
		}
		r.endAttempt(span, err)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrBusy), errors.Is(err, ErrClientGone):
			return err
		case errors.Is(err, ErrUnreachable):
			core.Unreachable(err)
			tried.Refused(core)
			continue
		case errors.Is(err, errUnfit):
			return ErrBroken
		case errors.Is(err, errAbandoned):
			failed = ErrTimeout
		default:
			core.Failed()
			failed = err
		}
		sent++
		if errors.Is(err, ErrTimeout) || !t.repeatable || sent == maxAttempts {
			return failed
		}
		c.retries.Inc()
		tried.Broke(core)
		t.fresh = true
	}
}

func (r *Request) isRepeatable() bool {
	h := &r.Ctx.Request.Header
	return h.IsGet() || h.IsHead() || r.HonorsIdempotencyKey && len(h.Peek(headerIdempotencyKey)) > 0
}

// try makes one attempt at one core.
func (c *Client) try(l *link, r *Request, text []byte, t terms) error {
	for {
		conn, err := l.pool(r).take(t.fresh)
		if err != nil {
			return err
		}
		if err = conn.send(text, t); err == nil {
			// Whoever is ready to run goes first: in the meantime the answer may come, and the wait for it is spared.
			runtime.Gosched()
			return c.receive(conn, r)
		}
		used := conn.used
		conn.drop()
		switch {
		case conn.sent:
			return conn.cause(err)
		case !used:
			return ErrUnreachable
		}
		t.fresh = true // what lay idle had been closed
	}
}

// receive reads the answer, and gives the connection back unless its body is to be streamed from it.
func (c *Client) receive(from *conn, r *Request) error {
	head, _ := c.heads.Get().(*fasthttp.ResponseHeader)
	defer func() {
		if r.stream == nil { // else the head is the stream's
			c.heads.Put(head)
		}
	}()
	err := readHead(head, from.reader)
	if err == nil {
		err = c.readBody(from, head, r)
	}
	switch {
	case err != nil:
		cause := from.cause(err)
		from.drop()
		return cause
	case r.stream != nil:
		return nil // the end of the body is the end of the exchange
	}
	r.Ended = time.Now()
	from.done(r.Ended, head.ConnectionClose())
	return nil
}

// readHead reads status and headers of the answer proper.
func readHead(h *fasthttp.ResponseHeader, from *bufio.Reader) error {
	h.Reset()
	h.SetNoDefaultContentType(true) // else fasthttp makes one up
	for range maxInterim {
		if err := h.Read(from); err != nil {
			return err
		}
		if status := h.StatusCode(); status >= fasthttp.StatusOK {
			return nil
		}
	}
	return errUnfit
}

// readBody makes the client's answer from core's, the head of which it is given.
func (c *Client) readBody(from *conn, head *fasthttp.ResponseHeader, r *Request) error {
	to, length := &r.Ctx.Response, head.ContentLength()
	switch {
	case isBodiless(head, r):
		to.SkipBody = true
		if r.Ctx.IsHead() {
			to.Header.SetContentLength(length)
		}
	case length < chunked:
		return errUnfit // without a length or chunks nobody could tell the whole from a part
	case r.Stream && (length == chunked || length > maxWholeAnswer):
		r.stream = from.stream(head, c.timeout, &c.streams)
		return nil
	default:
		if err := readWhole(to, from.reader, length); err != nil {
			to.ResetBody()
			return err
		}
	}
	copyAnswerHeaders(&to.Header, head, r.Session)
	return nil
}

// isBodiless reports whether no body follows the head, whatever that says.
func isBodiless(head *fasthttp.ResponseHeader, r *Request) bool {
	status := head.StatusCode()
	return r.Ctx.IsHead() || status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified
}
