package forward

import (
	"bufio"
	"errors"
	"io"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
)

// chunked is fasthttp's content length of a chunked body.
const chunked = -1

// readBody reads the body into the client's response.
func (c *Client) readBody(r *Request, from *bufio.Reader, length int) error {
	to := &r.Ctx.Response
	if length > maxBufferedBody {
		return errInvalidResponse
	}
	if length == chunked {
		n, err := io.Copy(to.BodyWriter(), io.LimitReader(httputil.NewChunkedReader(from), maxBufferedBody+1))
		switch {
		case err != nil:
			return err
		case n > maxBufferedBody:
			return errInvalidResponse
		}
		return readTrailers(from)
	}
	buffer := to.SwapBody(nil)
	if r.Stream && length > recycledBody {
		if recycled, ok := c.bodies.Get().(*[]byte); ok {
			buffer = *recycled
		}
	}
	body := slices.Grow(buffer[:0], length)[:length]
	_, err := io.ReadFull(from, body)
	to.SwapBody(body)
	return err
}

// Recycle takes back the buffer of a response's body, for another body that may stream. The caller must not use the body any
// more.
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

// Stream is a response whose body is read from core as fast as the client reads it. Only one read's buffer and the socket buffers
// are in memory; core waits while these are full. It must be closed or rejected.
type Stream struct {
	conn *coreConn
	head *fasthttp.ResponseHeader
	// chunks reads a chunked body, nil for a body with a length; remaining is the unread rest of that length.
	chunks    io.Reader
	remaining int
	// timeout bounds each wait for more of the body.
	timeout time.Duration
	// complete is set once all of the body was read.
	complete bool
	// bytesRead counts the body so far. err is why core's response ended early, nil if it did not.
	bytesRead int64
	err       error
	// attempt and request are the spans, nil if they do not record.
	attempt, request trace.Span
	metrics          *streamMetrics
}

// streamMetrics counts how streamed responses ended.
type streamMetrics struct{ complete, core, client prometheus.Counter }

func newStreamMetrics(registry prometheus.Registerer) streamMetrics {
	ended := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_streamed_answers_total",
		Help: "Streamed responses, by how they ended: whole, or aborted by core or by the client, one that reads too slowly " +
			"included. A rise of core means that cores end or fail while they send lists.",
	}, []string{"end"})
	return streamMetrics{complete: ended.WithLabelValues("whole"), core: ended.WithLabelValues("core"), client: ended.WithLabelValues("client")}
}

// newStream returns the response with this header as a stream, which owns the connection until it is closed.
func (c *coreConn) newStream(head *fasthttp.ResponseHeader, timeout time.Duration, metrics *streamMetrics) *Stream {
	c.options.peer = nil // the request may end before the stream does
	s := &Stream{conn: c, head: head, remaining: head.ContentLength(), timeout: timeout, metrics: metrics}
	if s.remaining == chunked {
		s.chunks = httputil.NewChunkedReader(c.reader)
	}
	return s
}

// Status is the response's status.
func (s *Stream) Status() int { return s.head.StatusCode() }

// Send sets this as the client's response. The body is the stream, or a wrapper that reads and closes it.
func (s *Stream) Send(to *fasthttp.Response, body io.Reader) {
	copyResponseHeaders(&to.Header, s.head, false)
	to.SetBodyStream(body, s.head.ContentLength())
}

// Reject ends the exchange and sends nothing to the client.
func (s *Stream) Reject() { s.end("rejected", nil) }

func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.next(p)
	s.bytesRead += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// streamPart is the longest part of a body that is written at once: with its chunk header it fits into the 16 KiB that a server
// writes at once.
const streamPart = 15 << 10

var streamParts = sync.Pool{New: func() any { return new([streamPart]byte) }}

// WriteTo implements io.WriterTo: it writes each part as it arrives. fasthttp's own copy writes parts of 4 KiB.
func (s *Stream) WriteTo(to io.Writer) (written int64, err error) {
	part, _ := streamParts.Get().(*[streamPart]byte)
	defer streamParts.Put(part)
	for {
		n, readErr := s.Read(part[:])
		if n > 0 {
			n, err = to.Write(part[:n])
			written += int64(n)
		}
		switch {
		case err != nil:
			return written, err
		case errors.Is(readErr, io.EOF):
			return written, nil
		case readErr != nil:
			return written, readErr
		}
	}
}

// SupportsBodyWriteTo implements fasthttp.BodyWriterTo: WriteTo reads with Read.
func (s *Stream) SupportsBodyWriteTo() bool { return true }

// next reads a part of the body. Its error is io.EOF at the end of the body.
func (s *Stream) next(p []byte) (int, error) {
	if s.complete {
		return 0, io.EOF
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, err
	}
	if s.chunks == nil {
		n, err := s.conn.reader.Read(p[:min(len(p), s.remaining)])
		s.remaining -= n
		s.complete = s.remaining == 0
		return n, err
	}
	n, err := s.chunks.Read(p)
	if err != io.EOF { // io.EOF follows the last chunk; a truncated body is another error
		return n, err
	}
	if err := readTrailers(s.conn.reader); err != nil {
		return n, err
	}
	s.complete = true
	return n, io.EOF
}

// Broken reports whether core's response ended before the end of the body.
func (s *Stream) Broken() bool { return s.err != nil }

// Close ends the exchange. The connection to core is returned to the pool if all of the body was read. Otherwise it is closed,
// which cancels core's work.
func (s *Stream) Close() error {
	s.end("client_gone", s.metrics.client)
	return nil
}

// end ends the exchange. If the body is incomplete, failure is the reason and counter its metric.
func (s *Stream) end(failure string, counter prometheus.Counter) {
	c := s.conn
	if c == nil {
		return
	}
	s.conn = nil
	c.core.End()
	s.endTrace(c, failure)
	switch {
	case s.complete:
		s.metrics.complete.Inc()
		c.release(time.Now(), s.head.ConnectionClose())
		return
	case s.err != nil:
		s.metrics.core.Inc()
	case counter != nil:
		counter.Inc()
	}
	c.discard()
}
