package edge

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/forward"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

const (
	headerAPIKey          = "X-Api-Key"
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"
)

// exchange is one request on its way and what has become known of it. It is used again for later requests, so nothing
// of it, and nothing of its ctx, may be kept.
type exchange struct {
	ctx     *fasthttp.RequestCtx
	began   time.Time
	id      string
	client  netip.Addr
	proto   string
	route   *route
	verdict *keys.Verdict
	outcome outcome
	// fate is what the key's usage counts the request as.
	fate usage.Kind
	// unread says that the connection closes with some of the request unread.
	unread bool
	// continues says that the body is yet to come, and with it the request proper.
	continues bool

	upstreamTime time.Duration

	request forward.Request
	scratch []byte
}

func (e *Edge) begin(ctx *fasthttp.RequestCtx) *exchange {
	x, _ := e.exchanges.Get().(*exchange)
	*x = exchange{ctx: ctx, began: time.Now(), id: requestID(ctx), route: unread, outcome: outcomePanic, scratch: x.scratch[:0]}
	return x
}

// end finishes every request, whatever became of it.
func (e *Edge) end(x *exchange) {
	if cause := recover(); cause != nil {
		e.reportPanic(cause)
		x.ctx.Response.Header.Reset() // of what was being built
		x.ctx.Response.Header.SetNoDefaultContentType(true)
		x.answer(internalError)
	} else if x.continues {
		e.release(x)
		return
	}
	answer := &x.ctx.Response
	answer.Header.Set(wire.HeaderRequestID, x.id)
	if e.draining.Load() {
		answer.SetConnectionClose()
	}
	if x.verdict != nil {
		e.usage.Count(&x.verdict.Usage, x.fate, x.began)
	}
	if x.unread {
		e.lingerer.linger(x.ctx)
	}
	elapsed := time.Since(x.began)
	e.metrics.count(x.route, x.outcome, elapsed)
	if e.accessLog != nil {
		e.logAccess(x, elapsed)
	}
	e.release(x)
}

func (e *Edge) release(x *exchange) {
	*x = exchange{scratch: x.scratch}
	e.exchanges.Put(x)
}

func (x *exchange) answer(r *reply) {
	x.outcome, x.unread = r.outcome, r.closes && r != tooSlow
	r.write(x.ctx)
	if x.route == console {
		showPage(&x.ctx.Response)
	}
}

func (x *exchange) method() []byte { return x.ctx.Request.Header.Method() }

// target is the path and query exactly as the client sent them.
func (x *exchange) target() []byte { return x.ctx.Request.Header.RequestURI() }

func (x *exchange) path() []byte {
	path, _, _ := bytes.Cut(x.target(), []byte("?"))
	return path
}

// upstream is what core is told.
func (x *exchange) upstream(target []byte) *forward.Request {
	x.scratch = x.client.AppendTo(x.scratch[:0])
	x.request = forward.Request{
		Ctx:      x.ctx,
		Target:   target,
		ID:       x.id,
		ClientIP: x.scratch,
		Proto:    x.proto,
		Verdict:  x.verdict,
		Session:  x.route.access == session,
		Stream:   x.route.streams(x.method()),
	}
	return &x.request
}

// tellLimit sets the RateLimit fields (draft-ietf-httpapi-ratelimit-headers): the quota and its window, what is left
// of it, and the seconds until it is whole again.
func (x *exchange) tellLimit(d limit.Decision) {
	header := &x.ctx.Response.Header
	b := x.scratch[:0]
	b = append(b, `"default";q=`...)
	b = strconv.AppendInt(b, int64(d.Rule.Burst), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, int64(d.Rule.Period/time.Second), 10)
	header.SetBytesV(headerRateLimitPolicy, b)

	b = append(b[:0], `"default";r=`...)
	b = strconv.AppendInt(b, int64(d.Remaining), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, max(0, ceil(d.ResetAfter, time.Second)), 10)
	header.SetBytesV(headerRateLimit, b)
	x.scratch = b
}

// hashOf reads a presented key, with the spaces around it dropped, into the only form in which it goes further.
func hashOf(presented []byte) (hash apikey.Hash, wellFormed bool) {
	presented = bytes.Trim(presented, " \t")
	// The string lasts as long as this call, the bytes longer.
	key, err := apikey.Parse(unsafe.String(unsafe.SliceData(presented), len(presented)))
	if err != nil {
		return apikey.Hash{}, false
	}
	return key.Hash(), true
}

// requestID is the client's own where that is harmless in a log, else a new one.
func requestID(ctx *fasthttp.RequestCtx) string {
	if own := ctx.Request.Header.Peek(wire.HeaderRequestID); isRequestID(own) {
		return string(own)
	}
	return uuid.Must(uuid.NewV7()).String()
}

func isRequestID(b []byte) bool {
	return len(b) >= 1 && len(b) <= 64 && all(b, requestIDByte)
}
