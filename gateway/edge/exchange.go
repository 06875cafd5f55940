package edge

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/upstream"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/wire"
)

const (
	headerAPIKey          = "X-Api-Key"
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"
)

// exchange is the state of one request. It is pooled, so neither it nor its ctx may be used after end.
type exchange struct {
	ctx   *fasthttp.RequestCtx
	began time.Time
	// now is the time at the end of the last stage that waited. Only such stages read the clock and set it.
	now time.Time
	// id is the request id: either idText or the client's.
	id       []byte
	idText   [36]byte
	clientIP netip.Addr
	proto    string
	route    *route
	verdict  *keys.Verdict
	// token is set if the request has a client token in place of a key; the verdict is on the token's key.
	token   *clienttoken.Claims
	outcome outcome
	// limit is the decision of the rate limits of the key and of its account.
	limit limit.Decision
	// tooManyRequests is the reply if a rate limit refuses the request.
	tooManyRequests reply
	// span is the request's span. Without a tracer it is the client's remote span, or a no-op span if the client sent no trace
	// context.
	span trace.Span
	// usageKind is how the key's usage counts the request.
	usageKind usage.Kind
	// batch is set if the request may be sent to core together with others.
	batch bool
	// awaitsBody is set while the request is incomplete: its body follows a 100 Continue.
	awaitsBody bool

	// upstreamTime is the time that core took in total, parked how long the request waited for events.
	upstreamTime, parked time.Duration

	request upstream.Request
	// response is core's response, kept for the next exchange because of its buffers.
	response *upstream.Response
	scratch  []byte
}

func (e *Edge) begin(ctx *fasthttp.RequestCtx, now time.Time) *exchange {
	x, _ := e.exchanges.Get().(*exchange)
	x.ctx, x.began, x.now, x.route, x.outcome = ctx, now, now, unreadPath, outcomePanic
	x.span = clientSpan(&ctx.Request.Header)
	x.id = requestID(&ctx.Request.Header, now, &x.idText)
	return x
}

// end finishes every request. It recovers a panic.
func (e *Edge) end(x *exchange) {
	if cause := recover(); cause != nil {
		e.logPanic(x, cause)
		x.ctx.Response.Header.Reset() // drop the headers of the response that was being built
		x.ctx.Response.Header.SetNoDefaultContentType(true)
		x.writeReply(internalError)
	} else if x.awaitsBody {
		e.release(x)
		return
	}
	response := &x.ctx.Response
	response.Header.SetCanonical(nameRequestID, x.id)
	if e.draining.Load() {
		response.SetConnectionClose()
	}
	if x.verdict != nil {
		e.usage.Count(&x.verdict.Usage, x.usageKind, x.began)
	}
	elapsed := x.now.Sub(x.began)
	e.metrics.count(x.route, x.outcome, elapsed-x.parked)
	x.endTrace()
	e.logAccess(x, elapsed)
	e.release(x)
}

func (e *Edge) release(x *exchange) {
	*x = exchange{scratch: x.scratch, response: x.response}
	e.exchanges.Put(x)
}

func (x *exchange) writeReply(r *reply) {
	x.outcome = r.outcome
	r.write(x)
	if r.closes && r != tooSlow {
		lingerOnClose(x.ctx)
	}
	if x.route == console {
		renderErrorPage(&x.ctx.Response, x.id)
	}
}

func (x *exchange) method() []byte { return x.ctx.Request.Header.Method() }

// target returns the path and query as the client sent them.
func (x *exchange) target() []byte { return x.ctx.Request.Header.RequestURI() }

func (x *exchange) path() []byte {
	path, _, _ := bytes.Cut(x.target(), []byte("?"))
	return path
}

// upstreamRequest returns the request to core.
func (x *exchange) upstreamRequest(target []byte) *upstream.Request {
	x.scratch = x.clientIP.AppendTo(x.scratch[:0])
	x.request = upstream.Request{
		Client:   &x.ctx.Request,
		Began:    x.now,
		Target:   target,
		ID:       x.id,
		Span:     x.span,
		Route:    x.route.pattern,
		ClientIP: x.scratch,
		Proto:    x.proto,
		Session:  x.route.access == session,
		Stream:   x.route.lists(x.method()),
		Batch:    x.batch,

		HonorsIdempotencyKey: x.route.honorsIdempotencyKey,
	}
	if v := x.verdict; v != nil {
		x.request.Identity = upstream.Identity{AccountID: v.AccountID(), KeyID: v.KeyID(), Environment: v.Environment()}
	}
	if x.route == quotes {
		x.request.MinTimeout = quoteTimeout
	}
	if v := connOf(x.ctx); v != nil {
		x.request.Peer = v
	}
	return &x.request
}

// Names of the response headers, canonical for SetCanonical.
var (
	nameRequestID       = []byte(wire.HeaderRequestID)
	nameRateLimit       = []byte(headerRateLimit)
	nameRateLimitPolicy = []byte(headerRateLimitPolicy)
	nameRetryAfter      = []byte(fasthttp.HeaderRetryAfter)
	nameCacheControl    = []byte(fasthttp.HeaderCacheControl)
)

// setRateLimit sets the RateLimit fields (draft-ietf-httpapi-ratelimit-headers).
func (x *exchange) setRateLimit() {
	header := &x.ctx.Response.Header
	x.scratch = appendPolicies(x.scratch[:0], &x.limit)
	header.SetCanonical(nameRateLimitPolicy, x.scratch)
	x.scratch = appendQuotas(x.scratch[:0], &x.limit)
	header.SetCanonical(nameRateLimit, x.scratch)
}

// appendPolicies appends the field RateLimit-Policy, first for the key and then for its account: the quota and its window.
func appendPolicies(b []byte, d *limit.Decision) []byte {
	b = appendPolicy(b, `"default";q=`, d.Rule)
	return appendPolicy(b, `, "account";q=`, d.Account.Rule)
}

// appendQuotas appends the field RateLimit: the remaining requests, and the seconds until all are available again.
func appendQuotas(b []byte, d *limit.Decision) []byte {
	b = appendQuota(b, `"default";r=`, &d.Quota)
	return appendQuota(b, `, "account";r=`, &d.Account)
}

func appendPolicy(b []byte, name string, rule tokenbucket.Rule) []byte {
	b = strconv.AppendInt(append(b, name...), int64(rule.Burst), 10)
	return strconv.AppendInt(append(b, ";w="...), int64(rule.Period/time.Second), 10)
}

func appendQuota(b []byte, name string, q *tokenbucket.Quota) []byte {
	b = strconv.AppendInt(append(b, name...), int64(q.Remaining), 10)
	return strconv.AppendInt(append(b, ";t="...), max(0, ceil(q.ResetAfter, time.Second)), 10)
}

// hashOf parses a key, without surrounding spaces, and returns its hash.
func hashOf(presented []byte) (hash apikey.Hash, wellFormed bool) {
	presented = trimSpace(presented)
	// The string shares the header's bytes, which do not change during this call.
	key, err := apikey.Parse(unsafe.String(unsafe.SliceData(presented), len(presented)))
	if err != nil {
		return apikey.Hash{}, false
	}
	return key.Hash(), true
}
