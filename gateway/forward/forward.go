package forward

import (
	"time"

	"github.com/valyala/fasthttp"

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
	// Span is the request's; the zero Span for none, which passes a client's own trace on. It should not end before the body of
	// a streamed answer has been passed on: that core broke off is told there.
	Span tracing.Span
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
	// Peer is the client's end, nil where it cannot be watched.
	Peer Peer
	// Stream passes the answer on as it comes, in bounded memory.
	Stream bool
	// Reader decides which of these answers the client may have; nil for all.
	Reader Reader
}

// Reader is the client as a reader of long answers.
type Reader interface {
	// MayHold reports whether a connection to core may be held until the client has read an answer. It is asked once,
	// before the answer begins.
	MayHold() bool
}

// Peer is the client's end of an exchange.
type Peer interface {
	// Gone reports whether the client has closed its connection. It is asked now and then while core is slow, and not
	// once Do has returned.
	Gone() bool
}

// Do sends the request to core and builds the client's answer from core's. Its errors are ErrUnreachable, ErrBusy,
// ErrNotHeld, ErrTimeout, ErrBroken and ErrClientGone; the client's answer is untouched then.
//
// Where the answer is streamed Do returns before the body has come. If the rest then fails the client's connection is
// closed before the answer's end, so that it cannot be taken for the whole. If the client leaves, the connection to core
// is closed, which ends core's work.
func (c *Client) Do(r *Request) error {
	text, _ := c.texts.Get().(*[]byte)
	err := c.exchange(r, text)
	c.texts.Put(text)
	if r.Ended.IsZero() {
		r.Ended = time.Now()
	}
	return err
}
