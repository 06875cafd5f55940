package upstream

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

// requestHeaders are forwarded from the client to core on every route. All others are dropped: hop-by-hop headers, the
// credential, cookies, and headers that only the gateway may set.
var requestHeaders = []string{
	fasthttp.HeaderAccept,
	fasthttp.HeaderAcceptEncoding,
	fasthttp.HeaderAcceptLanguage,
	fasthttp.HeaderContentType,
	fasthttp.HeaderIfModifiedSince,
	fasthttp.HeaderIfNoneMatch,
	fasthttp.HeaderUserAgent,
	headerIdempotencyKey,
}

// sessionRequestHeaders are also forwarded on the session routes: the browser's session, and the headers from which core detects
// forged requests.
var sessionRequestHeaders = []string{
	fasthttp.HeaderCookie,
	fasthttp.HeaderOrigin,
	fasthttp.HeaderReferer,
	"Sec-Fetch-Dest",
	"Sec-Fetch-Mode",
	"Sec-Fetch-Site",
	"Sec-Fetch-User",
}

// responseHeaders are forwarded from core to the client, in the canonical form of fasthttp's parser. The value is true for
// headers of the session routes only.
var responseHeaders = map[string]bool{
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

// appendRequest appends the encoded request: the headers from the lists above and the gateway's own, with the line of the secret, which is
// empty for a request in a batch. The span's context is passed on.
func (c *Client) appendRequest(b []byte, r *Request, host string, span trace.Span, secret string) []byte {
	from := &r.Client.Header
	b = append(b, from.Method()...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\n"...)
	if r.Session {
		b = appendHeader(b, fasthttp.HeaderHost, from.Host()) // core compares it with Origin
		b = appendHeaders(b, from, sessionRequestHeaders)
	} else {
		b = appendHeader(b, fasthttp.HeaderHost, host)
	}
	b = appendHeaders(b, from, requestHeaders)
	b = append(b, secret...)
	if r.own == nil {
		b = appendHeader(b, wire.HeaderRequestID, r.ID)
		b = appendHeader(b, headerForwardedFor, r.ClientIP)
		b = appendHeader(b, headerForwardedProto, r.Proto)
	}
	if r.hasKey() {
		b = appendHeader(b, wire.HeaderAccountID, r.Identity.AccountID)
		b = appendHeader(b, wire.HeaderKeyID, r.Identity.KeyID)
		b = appendHeader(b, wire.HeaderKeyEnv, string(r.Identity.Environment))
	}
	b = appendTrace(b, span)
	body := r.Client.Body()
	if len(body) > 0 || from.IsPost() || from.IsPatch() {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, body...)
}

// appendHeader drops a value that contains a line break. Callers have checked this already; here an error would allow header
// injection.
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

// IsResponseHeader reports whether this header of core's responses, in canonical form, is forwarded to clients.
func IsResponseHeader(name string) bool {
	_, known := responseHeaders[name]
	return known
}

// CopyHeader copies the status and the headers that are forwarded to clients.
func (p *Response) CopyHeader(to *fasthttp.ResponseHeader) {
	to.SetStatusCode(p.Status())
	for name, value := range p.Head.All() {
		if ofSession, known := responseHeaders[string(name)]; known && (p.session || !ofSession) {
			to.AddBytesKV(name, value)
		}
	}
}
