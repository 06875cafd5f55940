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

// body is the body of a long answer, read from core as fast as the client takes it: between the two there are the buffers
// of one read and of the sockets, and when they are full core waits.
type body struct {
	conn *conn
	// chunks are the body's where it has no length, nil else; left is what is still to come where it has one.
	chunks io.Reader
	left   int
	// patience bounds the wait for each next part.
	patience time.Duration
	// whole says that all of the body was read, last that core closes the connection after it.
	whole, last bool
	// passed counts the bytes that were read. broke is why core's part ended before the whole, nil where it did not.
	passed int64
	broke  error
	// trace is nil for none.
	trace *streamTrace
	ends  *streams
}

// streams counts how streamed answers ended.
type streams struct{ whole, core, client prometheus.Counter }

func newStreams(registry prometheus.Registerer) streams {
	ended := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_streamed_answers_total",
		Help: "Answers that were streamed, by how they ended: whole, or broken off by core or by the client, one that reads too slowly " +
			"included. A rise of core means that cores end or fail while they send lists.",
	}, []string{"end"})
	return streams{whole: ended.WithLabelValues("whole"), core: ended.WithLabelValues("core"), client: ended.WithLabelValues("client")}
}

// stream is the answer's body to read. The connection is the body's from now on, until it is closed.
func (c *conn) stream(last bool, length int, patience time.Duration, ends *streams) *body {
	c.terms.peer = nil // of a request that is over once this one's answer is on its way
	b := &body{conn: c, left: length, patience: patience, last: last, ends: ends}
	if length == chunked {
		b.chunks = httputil.NewChunkedReader(c.reader)
	}
	c.body = b
	return b
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.next(p)
	b.passed += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.broke = err
	}
	return n, err
}

// next reads some of the body; its error is io.EOF once there is no more.
func (b *body) next(p []byte) (int, error) {
	if b.whole {
		return 0, io.EOF
	}
	if b.chunks == nil {
		n, err := b.conn.reader.Read(p[:min(len(p), b.left)])
		b.left -= n
		b.whole = b.left == 0
		return n, err
	}
	n, err := b.chunks.Read(p)
	if err != io.EOF { // which is the last chunk; a body that stops short is another error
		return n, err
	}
	if err := endChunks(b.conn.reader); err != nil {
		return n, err
	}
	b.whole = true
	return n, io.EOF
}

// Close ends the exchange: the connection to core is used again if all of the body was read, and else closed, which ends
// core's work on it.
func (b *body) Close() error {
	c := b.conn
	if c == nil {
		return nil
	}
	b.conn, c.body = nil, nil
	c.core.End()
	b.endTrace(c)
	switch {
	case b.whole:
		b.ends.whole.Inc()
		c.done(time.Now(), b.last)
		return nil
	case b.broke != nil:
		b.ends.core.Inc()
	default:
		b.ends.client.Inc()
	}
	c.drop()
	return nil
}
