// Package edge serves clients: it runs each request through all checks, in a fixed order, and forwards the requests that pass.
//
// It owns the public interface of the gateway: the paths, every status and body of the gateway itself, the access log and the
// request metrics. It rejects a request that two parsers could read differently.
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
	"intents.internal/gateway/conn"
	"intents.internal/gateway/control"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/polls"
	"intents.internal/gateway/upstream"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
)

// Options are the edge's parts and settings; all must be set unless said otherwise.
type Options struct {
	Keys    *keys.Verifier
	Limiter *limit.Limiter
	Chains  *control.Chains
	Catalog *catalog.Catalog
	Core    *control.Client
	// Tokens verifies client tokens.
	Tokens *clienttoken.Minter
	// Upstream is what the requests of clients are forwarded with.
	Upstream *upstream.Client
	Polls    *polls.Polls
	Usage    *usage.Recorder
	// CoreSilence is how long all cores may be silent, or not ready, before /health responds with 503.
	CoreSilence time.Duration
	// TrustedProxies are the addresses whose X-Forwarded-For and X-Forwarded-Proto are used; may be empty.
	TrustedProxies []netip.Prefix
	Server         ServerOptions
	// Tracer makes the spans of requests; nil for none.
	Tracer *tracing.Tracer
	// AccessLog gets one line for each request; nil for none.
	AccessLog *slog.Logger
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Edge is safe for concurrent use.
type Edge struct {
	keys           *keys.Verifier
	limiter        *limit.Limiter
	chains         *control.Chains
	catalog        *catalog.Catalog
	core           *control.Client
	tokens         *clienttoken.Minter
	upstream       *upstream.Client
	polls          *polls.Polls
	usage          *usage.Recorder
	coreSilence    time.Duration
	trustedProxies []netip.Prefix
	unreadableLogs telemetry.Sampler
	maxBody        int
	bodyTooLong    *reply
	streamTimeout  time.Duration

	server      *fasthttp.Server
	connLimiter *conn.Limiter
	streams     streamLimiter
	quotes      quoteLimiter
	draining    atomic.Bool
	exchanges   sync.Pool
	tracer      *tracing.Tracer

	accessLog *slog.Logger
	log       *slog.Logger
	metrics   metrics
}

// New creates an edge. It serves nothing before Serve.
func New(o Options) *Edge {
	e := &Edge{
		keys:           o.Keys,
		limiter:        o.Limiter,
		chains:         o.Chains,
		catalog:        o.Catalog,
		core:           o.Core,
		tokens:         o.Tokens,
		upstream:       o.Upstream,
		polls:          o.Polls,
		usage:          o.Usage,
		coreSilence:    o.CoreSilence,
		trustedProxies: o.TrustedProxies,
		unreadableLogs: telemetry.Sampler{Every: logUnreadableEvery},
		maxBody:        o.Server.MaxBodyBytes,
		bodyTooLong:    closing(bodyTooLarge(o.Server.MaxBodyBytes)),
		streamTimeout:  o.Server.StreamTimeout,
		tracer:         o.Tracer,
		accessLog:      o.AccessLog,
		log:            o.Log,
		streams:        newStreamLimiter(o.Server.MaxLongLists, o.Metrics),
		quotes:         newQuoteLimiter(o.Server.MaxQuoteRequests),
		metrics:        newMetrics(o.Metrics),
	}
	e.exchanges.New = func() any { return &exchange{response: &upstream.Response{}} }
	e.connLimiter = conn.NewLimiter(conn.Options{
		MaxConns: o.Server.MaxConns, MaxConnsPerIP: o.Server.MaxConnsPerIP, WriteTimeout: o.Server.WriteTimeout, StreamRate: o.Server.StreamRate,
	}, o.Log, o.Metrics)
	e.server = e.newServer(o.Server)
	return e
}

// handle is fasthttp's handler. The request has been read completely.
func (e *Edge) handle(ctx *fasthttp.RequestCtx) { e.handleAt(ctx, ctx.Time()) }

func (e *Edge) handleAt(ctx *fasthttp.RequestCtx, now time.Time) {
	// The parser has normalized the header names, and all look-ups below use canonical names.
	ctx.Request.Header.DisableNormalizing()
	x := e.begin(ctx, now)
	defer e.end(x)
	e.startTrace(x)
	if refusal := e.process(x); refusal != nil {
		x.writeReply(refusal)
	}
}

// process is the complete path of a request. It returns the gateway's own reply, or nil if core's response is set.
//
// The checks run from the cheapest to the most expensive:
//
//  1. framing: requests that two parsers could read differently are rejected;
//  2. route: it decides whether a key is needed, and is matched on the bytes that are forwarded;
//  3. reserved headers: they need no check, because the request to core is built from an allowlist of headers;
//  4. key format, then key verdict: a request without a usable key uses no rate limit and learns of no path. In place of a key three routes take a
//     client token, whose signature and expiry are checked before the verdict on its key;
//  5. key restrictions, network before scope: both are part of the verdict and need no call. A rejected request takes no token,
//     so a stolen key cannot use up its owner's rate limit from another network;
//  6. rate limit: requests that later checks reject count too, so that a flood of invalid requests is limited;
//  7. path and method of keyed routes: only the owner of a key gets a 404 or 405;
//  8. body and environment of a request for an intent or for quotes: this check reads the body, so it is last. Of a batch of intents
//     the body comes before the rate limit, which depends on the number of intents;
//  9. shared documents are served from the catalog; all other requests, and documents that are not in it, are forwarded;
//  10. a request for events that may wait is parked while core has none;
//  11. a request for quotes is forwarded within the bounds of its key, its account and the gateway.
func (e *Edge) process(x *exchange) *reply {
	if refusal := e.authenticate(x); refusal != nil {
		return refusal
	}
	return e.serve(x)
}

// serve answers an authenticated request. It checks again that a keyed request has a verdict, in case an earlier check is faulty.
func (e *Edge) serve(x *exchange) *reply {
	if x.verdict == nil && x.route.wantsKey(x.path(), x.method()) {
		e.log.Error("a keyed request passed the checks without a verdict on its key", "route", x.route.pattern)
		return internalError
	}
	does := x.route.action(x.method())
	if x.verdict != nil && does != forwardTransferBatch { // which takes its own
		if refusal := e.takeTokens(x, 1); refusal != nil {
			return refusal
		}
	}
	switch does {
	case refuse:
		return x.route.fallback
	case healthCheck:
		return e.checkHealth()
	case serveShared:
		return e.serveShared(x)
	case forwardTransfer:
		if refusal := e.checkTransfer(x); refusal != nil {
			return refusal
		}
	case forwardTransferBatch:
		return e.forwardTransferBatch(x)
	case forwardQuoteRequest:
		return e.forwardQuoteRequest(x)
	case forwardAsIs:
	}
	return e.forward(x, x.target())
}

// authenticate runs the checks that need no body: framing, route, key format, key verdict and key restrictions.
func (e *Edge) authenticate(x *exchange) *reply {
	refusal := e.checkFraming(&x.ctx.Request.Header)
	if isOfContent(refusal) && match(x.path()).action(x.method()) == refuse {
		refusal = nil
		lingerOnClose(x.ctx) // the body stays unread
	}
	if refusal != nil {
		return refusal
	}
	path := x.path()
	x.route = match(path)
	e.setWriteTimeout(x)
	x.clientIP, x.proto = e.client(x.ctx)
	if !x.route.wantsKey(path, x.method()) {
		return nil
	}
	return e.verifyKey(x)
}

// verifyKey sets the verdict on the request's key and checks that the key allows the request. A request without a key may have a client token.
func (e *Edge) verifyKey(x *exchange) *reply {
	presented := x.ctx.Request.Header.PeekAll(headerAPIKey) // framing has rejected a second one
	if len(presented) == 0 {
		return e.verifyClientToken(x)
	}
	hash, wellFormed := hashOf(presented[0])
	if !wellFormed {
		return malformedKey
	}
	err := e.lookUpKey(x, hash)
	switch {
	case err == nil:
		return checkRestrictions(x)
	case errors.Is(err, keys.ErrUnknown):
		return unknownKey
	case errors.Is(err, keys.ErrRefused):
		return refusedKey
	default:
		return keysUnavailable
	}
}

// lookUpKey sets the verdict on the key with this hash, or returns an error of keys.Verifier.
func (e *Edge) lookUpKey(x *exchange, hash apikey.Hash) error {
	start := x.now
	verdict, err := e.keys.Lookup(hash, start)
	if errors.Is(err, keys.ErrNotCached) {
		verdict, err = e.keys.Verify(hash)
		x.now = time.Now()
		e.metrics.keyStage.Observe(x.now.Sub(start).Seconds())
	}
	if err != nil {
		return err
	}
	x.verdict = verdict
	return nil
}

// takeTokens takes one token from the bucket of the key, or of its client tokens, and cost tokens from its account's, and sets the RateLimit fields.
func (e *Edge) takeTokens(x *exchange, cost int) *reply {
	start := x.now
	key, refusals := x.keyLimit()
	decision, err := e.limiter.Take(key, x.verdict.AccountLimit(), cost, refusals, start)
	if !decision.Cached {
		x.now = time.Now()
		e.metrics.limitStage.Observe(x.now.Sub(start).Seconds())
	}
	if err != nil {
		return limiterUnavailable
	}
	x.limit = decision
	x.setRateLimit()
	if decision.Allowed {
		return nil
	}
	return x.limited()
}

// limited returns the reply to a request that a rate limit has refused.
func (x *exchange) limited() *reply {
	x.usageKind = usage.Limited
	message := keyLimited
	if x.token != nil {
		message = tokenLimited
	}
	x.tooManyRequests = newTooManyRequests(&x.limit, message, x.replyBuffer())
	return &x.tooManyRequests
}

// forward sends the request to core with the given target.
func (e *Edge) forward(x *exchange, target []byte) *reply {
	if x.route.lists(x.method()) {
		if x.route == events && isLongPoll(target) {
			return e.longPoll(x, target)
		}
		return e.forwardList(x, target)
	}
	refusal := e.sendToCore(x, target)
	if refusal == nil {
		x.writeHeader()
	}
	return refusal
}

// sendToCore sends the request to core and reads core's response, into the client's body if it does not stream.
func (e *Edge) sendToCore(x *exchange, target []byte) *reply {
	x.usageKind = usage.Accepted
	request, response := x.upstreamRequest(target), x.response
	response.Body = x.ctx.Response.SwapBody(nil) // its buffer
	err := e.upstream.Do(request, response)
	x.ctx.Response.SwapBody(response.Body)
	took := response.Ended.Sub(request.Began)
	x.upstreamTime, x.now = x.upstreamTime+took, response.Ended
	e.metrics.coreStage.Observe(took.Seconds())
	switch {
	case err == nil:
		x.outcome = outcomeOf(response.Status())
		return nil
	case errors.Is(err, upstream.ErrUnreachable), errors.Is(err, upstream.ErrBusy):
		return coreUnreachable
	case errors.Is(err, upstream.ErrTimeout):
		return lateWrite.of(x, coreTimeout)
	case errors.Is(err, upstream.ErrClientGone):
		return clientGone
	default:
		return brokenWrite.of(x, coreBroken)
	}
}

// writeHeader sets the status and header of core's response as the client's. Nothing may keep the response unless core says otherwise.
func (x *exchange) writeHeader() {
	to, from := &x.ctx.Response, x.response
	from.CopyHeader(&to.Header)
	if len(to.Header.PeekBytes(nameCacheControl)) == 0 {
		forbidCaching(&to.Header)
	}
	to.SkipBody = from.HasNoBody
	if x.ctx.IsHead() && from.Stream != nil && !to.IsBodyStream() { // of a stream, the header alone is sent
		to.SkipBody = true
		to.Header.SetContentLength(from.Stream.Length())
	}
}

func (e *Edge) checkHealth() *reply {
	if max(e.core.Silence(), e.upstream.Cores().Unready()) > e.coreSilence {
		return unhealthy
	}
	return healthy
}
