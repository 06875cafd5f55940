package forward

import (
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/keys"
	"intents.internal/pkg/tracing"
)

// Request is a client's request to core. Do does not use it after it returns.
type Request struct {
	Ctx *fasthttp.RequestCtx
	// Target is the path and query, sent unchanged.
	Target []byte
	// ID is the request id.
	ID []byte
	// Span is the request's span, nil for none. If it does not record, core gets its trace context unchanged. End it after the
	// body of a streamed response, whose failure it records.
	Span trace.Span
	// Route is the path template, for span names.
	Route string
	// Began is when the request is passed to Do. Do sets Ended when the response header or an error has arrived.
	Began, Ended time.Time
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
	// Poll allows the gateway to hold the response back. Do sets PollWait to how long core allows that. It is 0 if core does not
	// allow it or the response streams.
	Poll     bool
	PollWait time.Duration

	// stream is the response that streams, nil if the response was read completely.
	stream *Stream
}

// Peer is the client's connection.
type Peer interface {
	// Disconnected reports whether the client has closed its connection. Do calls it every checkInterval while core has not
	// responded.
	Disconnected() bool
}

// Do sends the request to core and sets the client's response from core's. Its errors are ErrUnreachable, ErrBusy, ErrTimeout,
// ErrBroken and ErrClientGone. They leave the client's response unchanged.
//
// If a response streams, Do returns it once its header has arrived, and Stream.Send sets the client's response. If the body fails
// later, the client's connection is closed before the body's end, so that the client does not mistake a part for the whole. If
// the client disconnects, the connection to core is closed, which cancels core's work.
func (c *Client) Do(r *Request) (*Stream, error) {
	if r.Span == nil {
		r.Span = tracing.Noop
	}
	buffer, _ := c.requestBuffers.Get().(*[]byte)
	err := c.roundTrip(r, buffer)
	c.requestBuffers.Put(buffer)
	if r.Ended.IsZero() {
		r.Ended = time.Now()
	}
	return r.stream, err
}
