package upstream

import (
	"errors"
	"io"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
)

// Stream is a body that is read from core as fast as the client reads it. Only one read's buffer and the socket buffers are in
// memory; core waits while these are full. It must be closed or rejected.
type Stream struct {
	exchange exchange
	ended    bool
	// length is the body's length, chunked if it is unknown. closing is set if core closes the connection after it.
	length  int
	closing bool
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
	// span and request are the spans of the exchange and of the request, nil if they do not record.
	span, request trace.Span
	metrics       *streamMetrics
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

// newStream returns the body of the response with this header. It owns the exchange until it is closed.
func newStream(x exchange, head *fasthttp.ResponseHeader, timeout time.Duration, metrics *streamMetrics) *Stream {
	x.conn.options.waiter = nil // the request may end before the stream does
	length := head.ContentLength()
	s := &Stream{exchange: x, length: length, closing: head.ConnectionClose(), remaining: length, timeout: timeout, metrics: metrics}
	if length == chunked {
		s.chunks = httputil.NewChunkedReader(x.conn.reader)
	}
	return s
}

// Length is the body's length, -1 if it is unknown.
func (s *Stream) Length() int { return s.length }

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
	if err := s.exchange.conn.SetReadDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, err
	}
	if s.chunks == nil {
		n, err := s.exchange.conn.reader.Read(p[:min(len(p), s.remaining)])
		s.remaining -= n
		s.complete = s.remaining == 0
		return n, err
	}
	n, err := s.chunks.Read(p)
	if err != io.EOF { // io.EOF follows the last chunk; a truncated body is another error
		return n, err
	}
	if err := readTrailers(s.exchange.conn.reader); err != nil {
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
	if s.ended {
		return
	}
	s.ended = true
	s.endSpan(failure)
	switch {
	case s.complete:
		counter = s.metrics.complete
	case s.err != nil:
		counter = s.metrics.core
	}
	if counter != nil {
		counter.Inc()
	}
	s.exchange.end(s.complete, time.Now(), s.closing)
}
