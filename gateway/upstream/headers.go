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
	headerPrefer         = "Prefer" // RFC 7240
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
	headerPrefer,
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
	"Preference-Applied":               false,
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

// form is how fields are encoded.
type form bool

const (
	asText   form = false // lines of an HTTP/1.1 message
	inFrames form = true  // fields of a message in a batch
)

// appendRequest appends the encoded request for the core with this address, with the line of the secret.
func (c *Client) appendRequest(b []byte, r *Request, host string, span trace.Span) []byte {
	from := &r.Client.Header
	b = append(b, r.method()...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\n"...)
	if r.Session {
		b = appendField(b, asText, fasthttp.HeaderHost, from.Host()) // core compares it with Origin
		b = appendFields(b, asText, from, sessionRequestHeaders)
	} else {
		b = appendField(b, asText, fasthttp.HeaderHost, host)
	}
	b = append(b, c.secret...)
	b = appendRequestFields(b, asText, r, span)
	body := r.Client.Body()
	if len(body) > 0 || from.IsPost() || from.IsPatch() {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, body...)
}

// appendMessage appends the request as the message of a batch.
func appendMessage(b []byte, r *Request, span trace.Span) []byte {
	b = wire.AppendField(b, wire.FieldMethod, r.Client.Header.Method())
	b = wire.AppendField(b, wire.FieldPath, r.Target)
	b = appendRequestFields(b, inFrames, r, span)
	return wire.AppendBody(b, r.Client.Body())
}

// appendRequestFields appends the headers from the list above and the gateway's own. The span's context is passed on.
func appendRequestFields(b []byte, as form, r *Request, span trace.Span) []byte {
	b = appendFields(b, as, &r.Client.Header, requestHeaders)
	if len(r.ID) > 0 {
		b = appendField(b, as, wire.HeaderRequestID, r.ID)
		b = appendField(b, as, headerForwardedFor, r.ClientIP)
		b = appendField(b, as, headerForwardedProto, r.Proto)
	}
	if r.hasKey() {
		b = appendField(b, as, wire.HeaderAccountID, r.Identity.AccountID)
		b = appendField(b, as, wire.HeaderKeyID, r.Identity.KeyID)
		b = appendField(b, as, wire.HeaderKeyEnv, string(r.Identity.Environment))
	}
	return appendTrace(b, as, span)
}

// appendField drops a value that contains a line break. Callers have checked this already; here an error would allow header
// injection.
func appendField[text string | []byte](b []byte, as form, name string, value text) []byte {
	start := len(b)
	if as == inFrames {
		b = wire.AppendField(b, name, value)
	} else {
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
	}
	if at := len(b) - len(value); bytes.IndexByte(b[at:], '\n') >= 0 || bytes.IndexByte(b[at:], '\r') >= 0 {
		return b[:start]
	}
	if as == asText {
		b = append(b, "\r\n"...)
	}
	return b
}

func appendFields(b []byte, as form, from *fasthttp.RequestHeader, names []string) []byte {
	for _, name := range names {
		if value := from.Peek(name); len(value) > 0 {
			b = appendField(b, as, name, value)
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
