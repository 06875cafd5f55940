package edge

import (
	"strings"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

// Cross-origin requests (the Fetch standard, CORS protocol) are for client tokens alone: no request with an API key gets these headers.

var (
	// tokenHeaders are the request headers that a page may set, and exposedHeaders those of the response that it may read, besides those that
	// every page may.
	tokenHeaders = strings.Join([]string{
		fasthttp.HeaderAuthorization, fasthttp.HeaderContentType, idempotencyKeyHeader, wire.HeaderRequestID, "Traceparent", "Tracestate",
	}, ", ")
	exposedHeaders = []byte(strings.Join([]string{
		wire.HeaderRequestID, fasthttp.HeaderRetryAfter, headerRateLimit, headerRateLimitPolicy,
	}, ", "))

	originRefused = newReply(fasthttp.StatusForbidden, outcomeOriginRefused, wire.OriginNotAllowed,
		"Pages of this origin may not use client tokens of the account. Add it in the console or with PATCH /v2/origins.")

	nameAllowOrigin   = []byte(fasthttp.HeaderAccessControlAllowOrigin)
	nameExposeHeaders = []byte(fasthttp.HeaderAccessControlExposeHeaders)
	nameVary          = []byte(fasthttp.HeaderVary)
	originField       = []byte(fasthttp.HeaderOrigin)
	anyOrigin         = []byte("*")
)

// preflightSeconds is how long a browser may keep the reply to a preflight; Chromium keeps none for longer.
const preflightSeconds = "7200"

// newPreflight returns the reply to a preflight of a route that client tokens may use with this method. It is the same for every origin, since a
// preflight has no credentials by which an account's origins could be found.
func newPreflight(method string) *reply {
	return &reply{status: fasthttp.StatusNoContent, outcome: outcomePreflight, headers: []string{
		fasthttp.HeaderAccessControlAllowOrigin, string(anyOrigin), fasthttp.HeaderAccessControlAllowMethods, method,
		fasthttp.HeaderAccessControlAllowHeaders, tokenHeaders, fasthttp.HeaderAccessControlMaxAge, preflightSeconds,
	}}
}

// isPreflight reports whether the request, which has no key, is a preflight of a route that client tokens may use.
func (r *route) isPreflight(header *fasthttp.RequestHeader) bool {
	return r.preflight != nil && header.IsOptions() && len(header.Peek(fasthttp.HeaderOrigin)) > 0 &&
		len(header.Peek(fasthttp.HeaderAccessControlRequestMethod)) > 0
}

// checkOrigin rejects a page of an origin that the account has not listed, and lets a listed one read the response. A request without an origin is
// no page's.
func (x *exchange) checkOrigin() *reply {
	origin := x.ctx.Request.Header.Peek(fasthttp.HeaderOrigin)
	if len(origin) == 0 {
		return nil
	}
	if !x.verdict.AllowsOrigin(origin) {
		return originRefused
	}
	x.allowOrigin(origin)
	return nil
}

// allowAnyOrigin lets every page read the reply to a token that is not valid or not for this, so that it gets another one. The reply tells of
// no account.
func (x *exchange) allowAnyOrigin() {
	if x.route.preflight != nil && len(x.ctx.Request.Header.Peek(fasthttp.HeaderOrigin)) > 0 {
		x.allowOrigin(anyOrigin)
	}
}

func (x *exchange) allowOrigin(origin []byte) {
	header := &x.ctx.Response.Header
	header.SetCanonical(nameAllowOrigin, origin)
	header.SetCanonical(nameExposeHeaders, exposedHeaders)
	header.SetCanonical(nameVary, originField)
}
