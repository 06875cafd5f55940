// Package edge is what clients speak to: it takes a request through every check, in one stated order, and forwards what
// passes.
//
// It owns the public face of the gateway: which paths there are, every status and body the gateway itself answers with,
// the access log and the request metrics. It refuses ambiguity: what could be read in two ways is not passed on.
package edge

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/catalog"
	"intents.internal/gateway/control"
	"intents.internal/gateway/forward"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/tracing"
)

// Options are the edge's parts and settings; all must be set unless said otherwise.
type Options struct {
	Keys    *keys.Verifier
	Limiter *limit.Limiter
	Chains  *control.Chains
	Catalog *catalog.Catalog
	Core    *control.Client
	Forward *forward.Client
	Usage   *usage.Recorder
	// CoreSilence is how long core may leave everything unanswered before /health says 503.
	CoreSilence time.Duration
	// TrustedProxies are the addresses whose X-Forwarded-For and X-Forwarded-Proto are believed; none may be given.
	TrustedProxies []netip.Prefix
	Server         ServerOptions
	// Tracer makes the spans of requests; nil for none.
	Tracer *tracing.Tracer
	// AccessLog gets one line per request; nil for none.
	AccessLog *slog.Logger
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Edge is safe for concurrent use.
type Edge struct {
	keys        *keys.Verifier
	limiter     *limit.Limiter
	chains      *control.Chains
	catalog     *catalog.Catalog
	core        *control.Client
	forward     *forward.Client
	usage       *usage.Recorder
	coreSilence time.Duration
	trusted     []netip.Prefix
	maxBody     int

	server    *fasthttp.Server
	door      *door
	streams   streamLimiter
	draining  atomic.Bool
	exchanges sync.Pool
	tracer    *tracing.Tracer

	accessLog *slog.Logger
	log       *slog.Logger
	metrics   metrics
}

// New makes an edge that serves nothing yet.
func New(o Options) *Edge {
	e := &Edge{
		keys:        o.Keys,
		limiter:     o.Limiter,
		chains:      o.Chains,
		catalog:     o.Catalog,
		core:        o.Core,
		forward:     o.Forward,
		usage:       o.Usage,
		coreSilence: o.CoreSilence,
		trusted:     o.TrustedProxies,
		maxBody:     o.Server.MaxBodyBytes,
		tracer:      o.Tracer,
		accessLog:   o.AccessLog,
		log:         o.Log,
		streams:     newStreamLimiter(o.Server.MaxLongAnswers, o.Metrics),
		metrics:     newMetrics(o.Metrics),
	}
	e.exchanges.New = func() any { return &exchange{} }
	e.door = newDoor(o.Server, o.Log, o.Metrics)
	e.server = e.newServer(o.Server)
	return e
}

// handle is fasthttp's entry for a request that has arrived whole.
func (e *Edge) handle(ctx *fasthttp.RequestCtx) { e.handleAt(ctx, ctx.Time()) }

func (e *Edge) handleAt(ctx *fasthttp.RequestCtx, now time.Time) {
	x := e.begin(ctx, now)
	defer e.end(x)
	e.startTrace(x)
	if refusal := e.process(x); refusal != nil {
		x.answer(refusal)
	}
}

// process is the whole path of a request. It returns the gateway's own reply, or nil where core's answer is in place.
//
// The order is from what costs nothing and trusts nothing to what costs most:
//
//  1. framing: what two parsers could read differently is refused before any of it is believed;
//  2. route: it says whether a key is needed, and is matched on the very bytes that are forwarded;
//  3. reserved headers: there is nothing to strip, because the upstream request is built anew from a list;
//  4. key format, then key verdict: nobody spends a limit, or learns what paths exist, without a usable key;
//  5. rate limit: everything a key does counts, also what is refused below, so that mistakes cannot be a way to flood;
//  6. path and method, for the keyed paths: only the owner of a key is told what is not there;
//  7. environment binding: it must read the body, so it comes last of the checks;
//  8. the answers that every client gets alike, from the gateway's own copy; all else, and what that lacks, is forwarded.
func (e *Edge) process(x *exchange) *reply {
	if refusal := e.admit(x); refusal != nil {
		return refusal
	}
	return e.serve(x)
}

// serve does what an admitted request asks for. Without a verdict it serves nothing that wants a key, whatever the checks
// before have let through.
func (e *Edge) serve(x *exchange) *reply {
	if x.verdict == nil && x.route.wantsKey(x.path(), x.method()) {
		e.log.Error("a keyed request was admitted without a verdict on its key", "route", x.route.pattern)
		return internalError
	}
	if x.verdict != nil {
		if refusal := e.spend(x); refusal != nil {
			return refusal
		}
	}
	switch x.route.action(x.method()) {
	case refuse:
		return x.route.elsewise
	case tellHealth:
		return e.tellHealth()
	case answerShared:
		return e.answerShared(x)
	case forwardTransfer:
		if refusal := e.bind(x); refusal != nil {
			return refusal
		}
	case forwardAsIs:
	}
	return e.pass(x, x.target())
}

// admit does what needs no body: framing, route, key format and key verdict.
func (e *Edge) admit(x *exchange) *reply {
	if refusal := e.checkFraming(&x.ctx.Request); refusal != nil {
		return refusal
	}
	path := x.path()
	x.route = match(path)
	x.client, x.proto = e.clientOf(x.ctx)
	if !x.route.wantsKey(path, x.method()) {
		return nil
	}
	return e.identify(x)
}

// identify finds whose request it is. The x-api-key header is the only credential considered.
func (e *Edge) identify(x *exchange) *reply {
	presented := x.ctx.Request.Header.PeekAll(headerAPIKey) // one at most, framing has seen to it
	if len(presented) == 0 {
		return noKey
	}
	hash, wellFormed := hashOf(presented[0])
	if !wellFormed {
		return malformedKey
	}
	verdict, err := e.keys.Lookup(hash, x.now)
	if errors.Is(err, keys.ErrNotCached) {
		verdict, err = e.keys.Verify(x.span, hash)
		e.metrics.keyStage.Observe(x.tick().Seconds())
	}
	switch {
	case err == nil:
		x.verdict = verdict
		return nil
	case errors.Is(err, keys.ErrUnknown):
		return unknownKey
	case errors.Is(err, keys.ErrRefused):
		return refusedKey
	default:
		return keysUnavailable
	}
}

// spend takes one request from the key's bucket and tells the client how it stands.
func (e *Edge) spend(x *exchange) *reply {
	decision, err := e.limiter.Take(x.span, x.verdict.Bucket, x.verdict.Rule(), x.now)
	if !decision.Cached {
		e.metrics.limitStage.Observe(x.tick().Seconds())
	}
	if err != nil {
		return limiterUnavailable
	}
	x.tellLimit(decision)
	if !decision.Allowed {
		x.fate = usage.Limited
		return x.tooManyRequests("Too many requests were made with this key. Wait as long as Retry-After says, then try again.", decision)
	}
	return nil
}

// pass forwards the request to core under the given target.
func (e *Edge) pass(x *exchange, target []byte) *reply {
	if x.route.lists(x.method()) {
		return e.passList(x, target)
	}
	_, refusal := e.send(x, target)
	return refusal
}

// send has core asked and its answer made the client's, but for a long one of a list, which it returns.
func (e *Edge) send(x *exchange, target []byte) (*forward.Stream, *reply) {
	x.fate = usage.Accepted
	request := x.upstream(target)
	stream, err := e.forward.Do(request)
	x.upstreamTime, x.now = request.Ended.Sub(x.now), request.Ended
	e.metrics.coreStage.Observe(x.upstreamTime.Seconds())
	switch {
	case err == nil && stream != nil:
		x.outcome = outcomeOf(stream.Status())
		return stream, nil
	case err == nil:
		x.outcome = outcomeOf(x.ctx.Response.StatusCode())
		return nil, nil
	case errors.Is(err, forward.ErrUnreachable), errors.Is(err, forward.ErrBusy):
		return nil, coreUnreachable
	case errors.Is(err, forward.ErrTimeout):
		return nil, coreTimeout
	case errors.Is(err, forward.ErrClientGone):
		return nil, clientGone
	default:
		return nil, coreBroken
	}
}

func (e *Edge) tellHealth() *reply {
	if e.core.Silence() > e.coreSilence {
		return unhealthy
	}
	return healthy
}
