package upstream

import (
	"bufio"
	"io"
	"net/http/httputil"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

const (
	// maxBufferedBody bounds a response body that is buffered in memory; routes with longer bodies stream. The longest is /docs of a
	// core of 0.1.0 without compression, above 1 MiB.
	maxBufferedBody = 3 << 19
	// maxUnstreamedBody is the longest body of known length that a streaming route buffers: it fits into the kernel's send
	// buffer, so the connection to core is free before the client has read it.
	maxUnstreamedBody = 512 << 10
	// recycledBody is the minimum size of a body of a streaming route that is read into a buffer of Recycle.
	recycledBody = 16 << 10
	// maxHeaderBytes bounds the header of a response.
	maxHeaderBytes = 16 << 10
	// chunked is fasthttp's content length of a chunked body.
	chunked = -1
	// maxInterim bounds the 1xx responses before the final one.
	maxInterim = 8
	// maxTrailers bounds the trailer lines after the last chunk.
	maxTrailers = 16
)

// Response is core's response. It may be reused for the next request.
type Response struct {
	// Head is the status and all headers. CopyHeader copies those that clients get.
	Head fasthttp.ResponseHeader
	// Body is the complete body of a response that does not stream, else empty. Do uses the buffer that it finds here.
	Body []byte
	// Stream is the body of a response that streams, else nil. It must be closed or rejected.
	Stream *Stream
	// HasNoBody is set if no body follows the header, whatever its Content-Length.
	HasNoBody bool
	// PollWait is how long core allows the response to be held back, 0 for not at all.
	PollWait time.Duration
	// Ended is when the header of a stream, the body of another response, or an error had arrived.
	Ended time.Time

	session bool
}

func (p *Response) reset() {
	p.Stream, p.HasNoBody, p.PollWait, p.Ended, p.session = nil, false, 0, time.Time{}, false
}

// Status is the response's status.
func (p *Response) Status() int { return p.Head.StatusCode() }

// read reads the response, without its body if it streams or is not core's.
func (c *Client) read(x *exchange, r *Request, maxBody int, p *Response, got *attempt) {
	p.session = r.Session
	if err := x.conn.readHead(&p.Head); err != nil {
		got.err = x.conn.wrapErr(err)
		return
	}
	got.status, got.by = p.Status(), speakerOf(&p.Head, r.Session)
	if got.by != byCore {
		return
	}
	if err := c.readContent(x, r, maxBody, p); err != nil {
		got.err = x.conn.wrapErr(err)
	}
}

// readContent reads what follows the header of core's response.
func (c *Client) readContent(x *exchange, r *Request, maxBody int, p *Response) error {
	length, status := p.Head.ContentLength(), p.Status()
	p.HasNoBody = status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified
	switch {
	case p.HasNoBody:
		return nil
	case length < chunked:
		return errInvalidResponse // a body that ends with the connection may be truncated
	case r.Stream && (length == chunked || length > maxUnstreamedBody):
		p.Stream = newStream(*x, &p.Head, c.timeout, &c.streamMetrics)
		return nil
	}
	if err := c.readBody(r, x.conn.reader, length, maxBody, p); err != nil {
		return err
	}
	if r.Stream {
		p.PollWait = pollWait(&p.Head)
	}
	return nil
}

// readHead reads the status and headers of the final response.
func (c *coreConn) readHead(h *fasthttp.ResponseHeader) error {
	h.Reset()
	h.SetNoDefaultContentType(true) // otherwise fasthttp sends its default content type
	for range maxInterim {
		if err := c.await(1); err != nil {
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

// readBody reads the complete body.
func (c *Client) readBody(r *Request, from *bufio.Reader, length, maxBody int, p *Response) error {
	if length > maxBody {
		return ErrTooLong
	}
	if length == chunked {
		return p.readChunks(from, maxBody)
	}
	if r.Stream && length > recycledBody {
		if recycled, ok := c.bodies.Get().(*[]byte); ok {
			p.Body = *recycled
		}
	}
	p.Body = slices.Grow(p.Body[:0], length)[:length]
	_, err := io.ReadFull(from, p.Body)
	return err
}

// readChunks reads a chunked body, up to the bound, and its trailers.
func (p *Response) readChunks(from *bufio.Reader, most int) error {
	chunks := httputil.NewChunkedReader(from)
	for p.Body = p.Body[:0]; ; {
		p.Body = slices.Grow(p.Body, bytesPerRead)
		n, err := chunks.Read(p.Body[len(p.Body):cap(p.Body)])
		p.Body = p.Body[:len(p.Body)+n]
		switch {
		case len(p.Body) > most:
			return ErrTooLong
		case err == io.EOF: // it follows the last chunk; a truncated body is another error
			return readTrailers(from)
		case err != nil:
			return err
		}
	}
}

// bytesPerRead is the least room for one read of a chunked body.
const bytesPerRead = 512

// Recycle takes back the buffer of a response's body, for another body of a route that may stream. The caller must not use the
// body any more.
func (c *Client) Recycle(body []byte) { c.bodies.Put(&body) }

// readTrailers reads and discards the trailers that may follow the last chunk.
func readTrailers(from *bufio.Reader) error {
	for range maxTrailers {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return err
		}
		if string(line) == "\r\n" {
			return nil
		}
	}
	return errInvalidResponse
}

// pollWait returns how long core allows the response to be held back: a whole number of seconds, 0 for none.
func pollWait(head *fasthttp.ResponseHeader) time.Duration {
	value := head.Peek(wire.HeaderPollWait)
	if len(value) == 0 {
		return 0
	}
	seconds, err := strconv.ParseUint(string(value), 10, 8)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
