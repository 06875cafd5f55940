package forward

import (
	"bufio"
	"errors"
	"io"
	"net/http/httputil"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
)

// chunked is fasthttp's word for the length of a body in chunks.
const chunked = -1

// readWhole reads a body into the client's answer.
func readWhole(to *fasthttp.Response, from *bufio.Reader, length int) error {
	if length > maxBufferedAnswer {
		return errUnfit
	}
	if length == chunked {
		n, err := io.Copy(to.BodyWriter(), io.LimitReader(httputil.NewChunkedReader(from), maxBufferedAnswer+1))
		switch {
		case err != nil:
			return err
		case n > maxBufferedAnswer:
			return errUnfit
		}
		return endChunks(from)
	}
	for length > 0 {
		if _, err := from.Peek(1); err != nil { // it reads as much as there is
			return err
		}
		part, _ := from.Peek(min(length, from.Buffered())) // which is there
		to.AppendBody(part)
		_, _ = from.Discard(len(part))
		length -= len(part)
	}
	return nil
}

// endChunks reads past the trailers that may follow the last chunk.
func endChunks(from *bufio.Reader) error {
	for range maxTrailers {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return err
		}
		if string(line) == "\r\n" {
			return nil
		}
	}
	return errUnfit
}

// Stream is a long answer whose head has come. Its body is read from core as fast as the client takes it: between the two
// there are the buffers of one read and of the sockets, and when they are full core waits. It must be closed or rejected.
type Stream struct {
	conn *conn
	head *fasthttp.ResponseHeader
	// chunks are the body's where it has no length, nil else; left is what is still to come where it has one.
	chunks io.Reader
	left   int
	// patience bounds the wait for each next part.
	patience time.Duration
	// whole says that all of the body was read.
	whole bool
	// passed counts the bytes that were read. broken is why core's part ended before the whole, nil where it did not.
	passed int64
	broken error
	// attempt and request are the spans, nil where they do not record.
	attempt, request trace.Span
	ends             *streams
}

// streams counts how streamed answers ended.
type streams struct{ whole, core, client prometheus.Counter }

func newStreams(registry prometheus.Registerer) streams {
	ended := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_streamed_answers_total",
		Help: "Answers that were streamed, by how they ended: whole, or broken off by core or by the client, one that reads too slowly " +
			"included. A rise of core means that cores end or fail while they send lists.",
	}, []string{"end"})
	return streams{whole: ended.WithLabelValues("whole"), core: ended.WithLabelValues("core"), client: ended.WithLabelValues("client")}
}

// stream is the long answer with this head. The connection is the stream's from now on, until it is closed.
func (c *conn) stream(head *fasthttp.ResponseHeader, patience time.Duration, ends *streams) *Stream {
	c.terms.peer = nil // of a request that is over once this one's answer is on its way
	s := &Stream{conn: c, head: head, left: head.ContentLength(), patience: patience, ends: ends}
	if s.left == chunked {
		s.chunks = httputil.NewChunkedReader(c.reader)
	}
	c.body = s
	return s
}

// Status is the answer's.
func (s *Stream) Status() int { return s.head.StatusCode() }

// Send makes this the client's answer. The body is the stream, or what reads and closes it.
func (s *Stream) Send(to *fasthttp.Response, body io.Reader) {
	copyAnswerHeaders(&to.Header, s.head, false)
	to.SetBodyStream(body, s.head.ContentLength())
}

// Reject ends the exchange where the client may not have the answer.
func (s *Stream) Reject() { s.end("rejected", nil) }

func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.next(p)
	s.passed += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.broken = err
	}
	return n, err
}

// next reads some of the body; its error is io.EOF once there is no more.
func (s *Stream) next(p []byte) (int, error) {
	if s.whole {
		return 0, io.EOF
	}
	if s.chunks == nil {
		n, err := s.conn.reader.Read(p[:min(len(p), s.left)])
		s.left -= n
		s.whole = s.left == 0
		return n, err
	}
	n, err := s.chunks.Read(p)
	if err != io.EOF { // which is the last chunk; a body that stops short is another error
		return n, err
	}
	if err := endChunks(s.conn.reader); err != nil {
		return n, err
	}
	s.whole = true
	return n, io.EOF
}

// Broken reports whether core's part of the answer ended before the whole.
func (s *Stream) Broken() bool { return s.broken != nil }

// Close ends the exchange: the connection to core is used again if all of the body was read, and else closed, which ends
// core's work on it.
func (s *Stream) Close() error {
	s.end("client_gone", s.ends.client)
	return nil
}

// end ends the exchange; unread is why, and what counts that, where there was more to read.
func (s *Stream) end(unread string, count prometheus.Counter) {
	c := s.conn
	if c == nil {
		return
	}
	s.conn, c.body = nil, nil
	c.core.End()
	s.endTrace(c, unread)
	switch {
	case s.whole:
		s.ends.whole.Inc()
		c.done(time.Now(), s.head.ConnectionClose())
		return
	case s.broken != nil:
		s.ends.core.Inc()
	case count != nil:
		count.Inc()
	}
	c.drop()
}
