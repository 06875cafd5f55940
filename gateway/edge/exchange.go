package edge

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

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
	ctx   *fasthttp.RequestCtx
	began time.Time
	// now is the time as last read: the clock is looked at where something may have taken long, and nowhere else.
	now time.Time
	// id is the request id, in idText unless the client brought it.
	id      []byte
	idText  [36]byte
	client  netip.Addr
	proto   string
	route   *route
	verdict *keys.Verdict
	outcome outcome
	// span is the request's, or while tracing is off that of the client.
	span trace.Span
	// fate is what the key's usage counts the request as.
	fate usage.Kind
	// unread says that the connection closes with some of the request unread.
	unread bool
	// continues says that the body is yet to come, and with it the request proper.
	continues bool

	upstreamTime time.Duration

	request forward.Request
	// refusal is the reply that tells a client to wait, made for this request alone.
	refusal reply
	scratch []byte
}

func (e *Edge) begin(ctx *fasthttp.RequestCtx, now time.Time) *exchange {
	x, _ := e.exchanges.Get().(*exchange)
	x.ctx, x.began, x.now, x.route, x.outcome = ctx, now, now, unread, outcomePanic
	x.span = clientSpan(&ctx.Request.Header)
	x.id = requestID(&ctx.Request.Header, now, &x.idText)
	return x
}

// end finishes every request, whatever became of it.
func (e *Edge) end(x *exchange) {
	if cause := recover(); cause != nil {
		e.reportPanic(x, cause)
		x.ctx.Response.Header.Reset() // of what was being built
		x.ctx.Response.Header.SetNoDefaultContentType(true)
		x.answer(internalError)
	} else if x.continues {
		e.release(x)
		return
	}
	answer := &x.ctx.Response
	answer.Header.SetCanonical(nameRequestID, x.id)
	if e.draining.Load() {
		answer.SetConnectionClose()
	}
	if x.verdict != nil {
		e.usage.Count(&x.verdict.Usage, x.fate, x.began)
	}
	if x.unread {
		linger(x.ctx)
	}
	elapsed := x.now.Sub(x.began)
	e.metrics.count(x.route, x.outcome, elapsed)
	x.endTrace()
	e.logAccess(x, elapsed)
	e.release(x)
}

// tick looks at the clock and tells how long it is since it was last looked at.
func (x *exchange) tick() time.Duration {
	last := x.now
	x.now = time.Now()
	return x.now.Sub(last)
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
		Began:    x.now,
		Target:   target,
		ID:       x.id,
		Span:     x.span,
		Route:    x.route.pattern,
		ClientIP: x.scratch,
		Proto:    x.proto,
		Verdict:  x.verdict,
		Session:  x.route.access == session,
		Stream:   x.route.lists(x.method()),

		HonorsIdempotencyKey: x.route.honorsIdempotencyKey,
	}
	if v := visitorOf(x.ctx); v != nil {
		x.request.Peer = v
	}
	return &x.request
}

// The names of what every answer bears, as fasthttp takes them with the least ado.
var (
	nameRequestID       = []byte(wire.HeaderRequestID)
	nameRateLimit       = []byte(headerRateLimit)
	nameRateLimitPolicy = []byte(headerRateLimitPolicy)
	nameRetryAfter      = []byte(fasthttp.HeaderRetryAfter)
	nameCacheControl    = []byte(fasthttp.HeaderCacheControl)
)

// tellLimit sets the RateLimit fields (draft-ietf-httpapi-ratelimit-headers): the quota and its window, what is left
// of it, and the seconds until it is whole again.
func (x *exchange) tellLimit(d limit.Decision) {
	header := &x.ctx.Response.Header
	b := x.scratch[:0]
	b = append(b, `"default";q=`...)
	b = strconv.AppendInt(b, int64(d.Rule.Burst), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, int64(d.Rule.Period/time.Second), 10)
	header.SetCanonical(nameRateLimitPolicy, b)

	b = append(b[:0], `"default";r=`...)
	b = strconv.AppendInt(b, int64(d.Remaining), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, max(0, ceil(d.ResetAfter, time.Second)), 10)
	header.SetCanonical(nameRateLimit, b)
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
