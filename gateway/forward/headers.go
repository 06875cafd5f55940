package forward

import (
	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
	headerTraceParent    = "Traceparent"
	headerTraceState     = "Tracestate"
)

// clientHeaders are what a client may say to core on every route. What is not listed is dropped: hop-by-hop headers,
// the credential, cookies, and everything only the gateway may say.
var clientHeaders = []string{
	fasthttp.HeaderAccept,
	fasthttp.HeaderAcceptEncoding,
	fasthttp.HeaderAcceptLanguage,
	fasthttp.HeaderContentType,
	fasthttp.HeaderIfModifiedSince,
	fasthttp.HeaderIfNoneMatch,
	fasthttp.HeaderUserAgent,
	headerIdempotencyKey,
}

// sessionHeaders are what a browser may say besides on the session routes: its session, and what core tells a forged
// request by.
var sessionHeaders = []string{
	fasthttp.HeaderCookie,
	fasthttp.HeaderOrigin,
	fasthttp.HeaderReferer,
	"Sec-Fetch-Dest",
	"Sec-Fetch-Mode",
	"Sec-Fetch-Site",
	"Sec-Fetch-User",
}

// answerHeaders are what core may say to a client; true for those of the session routes alone.
var answerHeaders = map[string]bool{
	fasthttp.HeaderAllow:               false,
	fasthttp.HeaderCacheControl:        false,
	fasthttp.HeaderContentEncoding:     false,
	fasthttp.HeaderContentLanguage:     false,
	fasthttp.HeaderContentType:         false,
	"Deprecation":                      false,
	"Etag":                             false,
	fasthttp.HeaderLastModified:        false,
	fasthttp.HeaderLink:                false,
	fasthttp.HeaderLocation:            false,
	fasthttp.HeaderRetryAfter:          false,
	"Sunset":                           false,
	fasthttp.HeaderVary:                false,
	fasthttp.HeaderXContentTypeOptions: false,
	"Clear-Site-Data":                  true,
	"Content-Disposition":              true,
	"Content-Security-Policy":          true,
	"Cross-Origin-Embedder-Policy":     true,
	"Cross-Origin-Opener-Policy":       true,
	"Cross-Origin-Resource-Policy":     true,
	"Permissions-Policy":               true,
	fasthttp.HeaderReferrerPolicy:      true,
	fasthttp.HeaderSetCookie:           true,
	"Strict-Transport-Security":        true,
	fasthttp.HeaderXFrameOptions:       true,
}

// fill builds the upstream request.
func (c *Client) fill(up *fasthttp.Request, r *Request) {
	from, to := &r.Ctx.Request.Header, &up.Header
	to.SetNoDefaultContentType(true)
	to.SetMethodBytes(from.Method())
	to.SetRequestURIBytes(r.Target)
	to.SetHost(c.host)
	copyHeaders(to, from, clientHeaders)
	if r.Session {
		to.SetHostBytes(from.Host()) // core compares it with Origin
		up.UseHostHeader = true
		copyHeaders(to, from, sessionHeaders)
	}
	to.Set(wire.HeaderGatewaySecret, c.secret)
	to.Set(wire.HeaderRequestID, r.ID)
	to.SetBytesV(headerForwardedFor, r.ClientIP)
	to.Set(headerForwardedProto, r.Proto)
	if r.Verdict != nil {
		to.Set(wire.HeaderAccountID, r.Verdict.AccountID)
		to.Set(wire.HeaderKeyID, r.Verdict.KeyID())
		to.Set(wire.HeaderKeyEnv, string(r.Verdict.Environment()))
	}
	copyTrace(to, from)
	if body := r.Ctx.Request.Body(); len(body) > 0 {
		up.SetBodyRaw(body) // outlived by the client's request, which waits for this one
	}
	up.URI().SetScheme(c.scheme)
}

func copyHeaders(to, from *fasthttp.RequestHeader, names []string) {
	for _, name := range names {
		if value := from.Peek(name); len(value) > 0 {
			to.SetBytesV(name, value)
		}
	}
}

// copyTrace passes a W3C trace context on if it is well formed; without a traceparent, tracestate means nothing.
func copyTrace(to, from *fasthttp.RequestHeader) {
	parents := from.PeekAll(headerTraceParent)
	if len(parents) != 1 || !isTraceParent(parents[0]) {
		return
	}
	to.SetBytesV(headerTraceParent, parents[0])
	if states := from.PeekAll(headerTraceState); len(states) == 1 && len(states[0]) <= 512 {
		to.SetBytesV(headerTraceState, states[0])
	}
}

// isTraceParent knows version 00: 00-<32 hex>-<16 hex>-<2 hex>, lower case, ids not all zero.
func isTraceParent(b []byte) bool {
	if len(b) != 55 || string(b[:3]) != "00-" || b[35] != '-' || b[52] != '-' {
		return false
	}
	return isHex(b[3:35]) && isHex(b[36:52]) && isHex(b[53:]) && !isZero(b[3:35]) && !isZero(b[36:52])
}

func isHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != '0' {
			return false
		}
	}
	return true
}

// copyAnswerHeaders takes from core's answer what a client may see.
func copyAnswerHeaders(to, from *fasthttp.ResponseHeader, session bool) {
	to.SetStatusCode(from.StatusCode())
	from.SetNoDefaultContentType(true) // else fasthttp makes one up
	for name, value := range from.All() {
		if ofSession, known := answerHeaders[string(name)]; known && (session || !ofSession) {
			to.AddBytesKV(name, value)
		}
	}
}
