package upstream

import (
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/network"
)

// Request is a client's request to core. Do does not use it after it returns.
type Request struct {
	// Client is the request as the client sent it. Its method, body and the headers of the allowlist are forwarded, and HEAD as GET.
	Client *fasthttp.Request
	// Target is the path and query, sent unchanged.
	Target []byte
	// ID is the request id, empty for a request that is no client's.
	ID []byte
	// Span is the request's span, nil for none. If it does not record, core gets its trace context unchanged. End it after the
	// body of a streamed response, whose failure it records.
	Span trace.Span
	// Route is the path template, for span names.
	Route string
	// Began is when the request is passed to Do.
	Began time.Time
	// ClientIP is the client's address as text, Proto the scheme it used.
	ClientIP []byte
	Proto    string
	// Identity is sent to core, zero on routes without a key.
	Identity Identity
	// Session passes cookies, and the headers that protect them, in both directions.
	Session bool
	// HonorsIdempotencyKey is set if core executes a write with the same Idempotency-Key on this route only once.
	HonorsIdempotencyKey bool
	// Peer is the client's connection, nil if it cannot be watched.
	Peer Peer
	// Stream allows a long response to be streamed, in bounded memory.
	Stream bool
	// Batch allows the request to be sent to core together with others that may be.
	Batch bool
	// MinTimeout replaces a shorter Options.Timeout; zero for none.
	MinTimeout time.Duration
}

// Peer is the client's connection.
type Peer interface {
	// Disconnected reports whether the client has closed its connection. Do calls it every checkInterval while core has not
	// responded.
	Disconnected() bool
}

// tick implements waiter. A client that has closed only its sending side counts as disconnected, as in net/http and nginx: both look the same
// until something is sent.
func (r *Request) tick() error {
	if r.Peer != nil && r.Peer.Disconnected() {
		return ErrClientGone
	}
	return nil
}

// Identity is the verified key of a request, and whom and what it is for.
type Identity struct {
	AccountID, KeyID string
	Environment      network.Environment
}

// method is what core is asked with. A HEAD is asked as a GET, so that its header fields are those of the GET; the server of clients leaves
// the body out.
func (r *Request) method() []byte {
	if r.Client.Header.IsHead() {
		return getMethod
	}
	return r.Client.Header.Method()
}

var getMethod = []byte(fasthttp.MethodGet)

// IsWrite reports whether the request may change something.
func (r *Request) IsWrite() bool {
	h := &r.Client.Header
	return !h.IsGet() && !h.IsHead()
}

// IsReplayable reports whether core may get the request twice without harm: a read, or a write that core carries out once.
func (r *Request) IsReplayable() bool {
	return !r.IsWrite() || r.HonorsIdempotencyKey && len(r.Client.Header.Peek(headerIdempotencyKey)) > 0
}

// hasKey reports whether the request has an identity.
func (r *Request) hasKey() bool { return r.Identity.KeyID != "" }
