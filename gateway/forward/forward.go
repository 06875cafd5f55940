package forward

import (
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/keys"
	"intents.internal/pkg/tracing"
)

// Request is a client's request to core. All of it is used only until Do returns.
type Request struct {
	Ctx *fasthttp.RequestCtx
	// Target is the path and query, sent unchanged.
	Target []byte
	// ID is the request id.
	ID []byte
	// Span is the request's span, nil for none. Core gets the trace context of a span that does not record unchanged. Span should
	// end after the body of a streamed response, whose failure it records.
	Span trace.Span
	// Route is the path template, for span names.
	Route string
	// Began is when the request is handed over. Do sets Ended when the response header, or an error, has come.
	Began, Ended time.Time
	// ClientIP is the client's address as text, Proto the scheme it used.
	ClientIP []byte
	Proto    string
	// Verdict is the identity sent to core, nil on routes without a key.
	Verdict *keys.Verdict
	// Session lets cookies, and the headers that protect them, cross in both directions.
	Session bool
	// HonorsIdempotencyKey says that core executes a write with an Idempotency-Key on this route once, however often it comes.
	HonorsIdempotencyKey bool
	// Peer is the client's connection, nil where it cannot be watched.
	Peer Peer
	// Stream allows a long response to be streamed, in bounded memory.
	Stream bool
	// Poll says that the gateway may hold the response back. Do then sets PollWait to how long core allows that, 0 for not at
	// all, which it is for a response that streams.
	Poll     bool
	PollWait time.Duration

	// stream is the response that streams, nil for one that was read whole.
	stream *Stream
}

// Peer is the client's connection.
type Peer interface {
	// Disconnected reports whether the client has closed its connection. It is called every checkInterval while core has not
	// answered, and not after Do has returned.
	Disconnected() bool
}

// Do sends the request to core and sets the client's response from core's. Its errors are ErrUnreachable, ErrBusy, ErrTimeout,
// ErrBroken and ErrClientGone, which leave the client's response untouched.
//
// Do returns a response that streams once its header has come, and leaves the client's response to Stream.Send. If the body
// fails later, the client's connection is closed before the body's end, so that the client does not take a part for the whole.
// If the client disconnects, the connection to core is closed, which cancels core's work.
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
