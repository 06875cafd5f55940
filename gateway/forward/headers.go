package forward

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/wire"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
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

// answerHeaders are what core may say to a client, in the canonical case to which fasthttp's parser brings every name; true for
// those of the session routes alone.
var answerHeaders = map[string]bool{
	fasthttp.HeaderAllow:               false,
	fasthttp.HeaderCacheControl:        false,
	fasthttp.HeaderContentEncoding:     false,
	fasthttp.HeaderContentLanguage:     false,
	fasthttp.HeaderContentType:         false,
	"Deprecation":                      false,
	"Etag":                             false,
	"Idempotent-Replayed":              false,
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

// appendRequest builds the request as it is sent: from the lists above and what the gateway itself has to say. The span is
// that of the attempt.
func (c *Client) appendRequest(b []byte, r *Request, host string, span trace.Span) []byte {
	from := &r.Ctx.Request.Header
	b = append(b, from.Method()...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\n"...)
	if r.Session {
		b = appendHeader(b, fasthttp.HeaderHost, from.Host()) // core compares it with Origin
		b = appendHeaders(b, from, sessionHeaders)
	} else {
		b = appendHeader(b, fasthttp.HeaderHost, host)
	}
	b = appendHeaders(b, from, clientHeaders)
	b = append(b, c.secret...)
	b = appendHeader(b, wire.HeaderRequestID, r.ID)
	b = appendHeader(b, headerForwardedFor, r.ClientIP)
	b = appendHeader(b, headerForwardedProto, r.Proto)
	if r.Verdict != nil {
		b = appendHeader(b, wire.HeaderAccountID, r.Verdict.AccountID)
		b = appendHeader(b, wire.HeaderKeyID, r.Verdict.KeyID())
		b = appendHeader(b, wire.HeaderKeyEnv, string(r.Verdict.Environment()))
	}
	b = appendTrace(b, span)
	body := r.Ctx.Request.Body()
	if len(body) > 0 || from.IsPost() {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, body...)
}

// appendHeader leaves out a value that would end its line: whoever called has checked, but this is where it would matter.
func appendHeader[text string | []byte](b []byte, name string, value text) []byte {
	start := len(b)
	b = append(b, name...)
	b = append(b, ": "...)
	at := len(b)
	b = append(b, value...)
	if bytes.IndexByte(b[at:], '\n') >= 0 || bytes.IndexByte(b[at:], '\r') >= 0 {
		return b[:start]
	}
	return append(b, "\r\n"...)
}

func appendHeaders(b []byte, from *fasthttp.RequestHeader, names []string) []byte {
	for _, name := range names {
		if value := from.Peek(name); len(value) > 0 {
			b = appendHeader(b, name, value)
		}
	}
	return b
}

// IsAnswerHeader reports whether a client may see this header field of an answer of core's, given in canonical form.
func IsAnswerHeader(name string) bool {
	_, known := answerHeaders[name]
	return known
}

// copyAnswerHeaders takes from core's answer what a client may see.
func copyAnswerHeaders(to, from *fasthttp.ResponseHeader, session bool) {
	to.SetStatusCode(from.StatusCode())
	for name, value := range from.All() {
		if ofSession, known := answerHeaders[string(name)]; known && (session || !ofSession) {
			to.AddBytesKV(name, value)
		}
	}
}
