package forward

import (
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/keys"
	"intents.internal/pkg/tracing"
)

// Request is what the gateway says to core on behalf of a client. Everything in it is used only until Do returns.
type Request struct {
	Ctx *fasthttp.RequestCtx
	// Target is the path and query, sent as they are.
	Target []byte
	// ID is the request id.
	ID []byte
	// Span is the request's, or the client's remote span, which is passed on as it is; nil for none. It should end after the
	// body of a streamed answer, since a fault of core's in the body fails it.
	Span trace.Span
	// Route is the template of the target's path, for spans.
	Route string
	// Began is when the request is handed over; Do sets Ended to when the head of the answer, or an error, had come.
	Began, Ended time.Time
	// ClientIP is the client's address in text, and Proto the scheme it used.
	ClientIP []byte
	Proto    string
	// Verdict is the identity core is told, nil on routes without a key.
	Verdict *keys.Verdict
	// Session lets a browser's session and what protects it cross in both directions.
	Session bool
	// HonorsIdempotencyKey says that core carries a write with an Idempotency-Key on this route out once, however often it comes.
	HonorsIdempotencyKey bool
	// Peer is the client's end, nil where it cannot be watched.
	Peer Peer
	// Stream has a long answer passed on as it comes, in bounded memory.
	Stream bool

	// stream is the long answer, nil for a short one.
	stream *Stream
}

// Peer is the client's end of an exchange.
type Peer interface {
	// Gone reports whether the client has closed its connection. It is asked now and then while core is slow, and not
	// once Do has returned.
	Gone() bool
}

// Do sends the request to core and builds the client's answer from core's. Its errors are ErrUnreachable, ErrBusy,
// ErrTimeout, ErrBroken and ErrClientGone; the client's answer is untouched then.
//
// Where the answer is a long one that streams, Do returns it before its body has come, and leaves the client's answer to
// Stream.Send. If the rest then fails the client's connection is closed before the answer's end, so that it cannot be taken
// for the whole. If the client leaves, the connection to core is closed, which ends core's work.
func (c *Client) Do(r *Request) (*Stream, error) {
	if r.Span == nil {
		r.Span = tracing.Noop
	}
	text, _ := c.texts.Get().(*[]byte)
	err := c.exchange(r, text)
	c.texts.Put(text)
	if r.Ended.IsZero() {
		r.Ended = time.Now()
	}
	return r.stream, err
}
