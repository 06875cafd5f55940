package edge

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

// maxHeaderLines bounds the header lines of one request.
const maxHeaderLines = 64

// headerSet is a set of the header names that framing checks.
type headerSet uint16

const (
	hasContentLength headerSet = 1 << iota
	hasTransferEncoding
	hasHost
	hasAPIKey
	hasExpect
	hasContentEncoding
	hasContentType
	hasIdempotencyKey
	hasUserAgent
	hasCookie
	hasOrigin
	hasAuthorization
	// hasClientToken is set besides for an Authorization with a client token.
	hasClientToken
)

// framing is the part of the raw header block that delimits the request.
type framing struct {
	seen             headerSet
	contentLength    []byte
	transferEncoding []byte
	contentEncoding  []byte
	expect           []byte
}

var (
	endsInLF        = badRequest("Header lines must end in CR LF.")
	foldedHeader    = badRequest("Header lines must not be folded.")
	malformedHeader = badRequest("A header line is malformed.")
	repeatedHeader  = badRequest("A header that may stand only once is repeated.")
	repeatedKey     = badRequest("The x-api-key header is repeated.")
	twoCredentials  = badRequest("An API key and a client token must not stand together.")
	emptyKey        = badRequest("The Idempotency-Key header is empty.")
	twoLengths      = badRequest("Content-Length and Transfer-Encoding must not stand together.")
	badLength       = badRequest("Content-Length must be one decimal number.")
	badEncoding     = badRequest("Transfer-Encoding must be chunked.")
	badHost         = badRequest("There must be one Host header with a host name.")
	trailerRefused  = badRequest("This service does not take trailers.")
	unexpectedBody  = badRequest("This method does not take a body.")
	badTarget       = badRequest("The request target must be a path.")
	badPath         = badRequest("The path holds characters that no path of this service has.")
	badQuery        = badRequest("The query holds characters that must be percent-encoded.")
	unreadable      = badRequest("The request is not valid HTTP/1.1.")
	ancientVersion  = badRequest("HTTP/0.9 is not spoken here.")
	tooManyHeaders  = malformed(fasthttp.StatusRequestHeaderFieldsTooLarge, headersTooLarge, "The request has too many header lines.")
	headersTooLong  = malformed(fasthttp.StatusRequestHeaderFieldsTooLarge, headersTooLarge, "The request's headers are too long.")
	tooLong         = early(bodyTooLarge(0)) // stands for the one that names the bound: Edge.bodyTooLong
	tooSlow         = malformed(fasthttp.StatusRequestTimeout, requestTimeout, "The request did not arrive in time.")
	badVersion      = malformed(fasthttp.StatusHTTPVersionNotSupported, versionNotSupported, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
	badExpectation  = malformed(fasthttp.StatusExpectationFailed, expectationFailed, "The only expectation met is 100-continue.")
	compressedBody  = malformed(fasthttp.StatusUnsupportedMediaType, wire.UnsupportedMediaType, "The body must not be compressed.")
	unknownMethod   = early(methodNotAllowed(strings.Join(routedMethods, ", ")))
)

// framingResult is the name under which handleHeader leaves the result of its check in the header, because fasthttp does not tell it
// whose header it is. No client can send this name. The value is chunkedBody or the number of a malformed reply; there is none for
// a request that passed whose body is not chunked.
const framingResult = ":framing"

var chunkedBody = []byte("chunked")

// checkFraming rejects requests that two parsers could read differently, and requests that no client of this service needs to
// send. handleHeader has checked all but the trailers, which follow the body.
func (e *Edge) checkFraming(h *fasthttp.RequestHeader) *reply {
	result := h.Peek(framingResult)
	switch {
	case len(result) == 0:
		return nil
	case !bytes.Equal(result, chunkedBody):
		n, _ := number(result)
		if r := malformedReplies[n]; r != tooLong {
			return r
		}
		return e.bodyTooLong
	case hasTrailers(h):
		return trailerRefused
	default:
		return nil
	}
}

// check reads only the bytes before the body. It uses only the request line of fasthttp's parser, and parses the raw header block
// again because fasthttp's parser is more lenient.
func (f *framing) check(h *fasthttp.RequestHeader, longest int) *reply {
	switch protocol := h.Protocol(); {
	case string(protocol) == "HTTP/1.1", string(protocol) == "HTTP/1.0":
	case bytes.HasPrefix(protocol, []byte("HTTP/0.")):
		return ancientVersion
	default:
		return badVersion
	}
	if !isKnownMethod(h.Method()) {
		return unknownMethod
	}
	if r := f.scan(h.RawHeaders()); r != nil {
		return r
	}
	if f.seen&hasAPIKey != 0 && f.seen&hasClientToken != 0 {
		return twoCredentials
	}
	if r := f.checkBody(); r != nil {
		return r
	}
	switch hosted := f.seen&hasHost != 0; {
	case !hosted && isHealthCheckOf10(h):
	case !hosted || !isHost(h.Host()):
		return badHost
	}
	if r := checkTarget(h.RequestURI()); r != nil {
		return r
	}
	return f.checkContent(h, longest)
}

// isHealthCheckOf10 reports whether the request is a health check by HTTP/1.0, which load balancers such as HAProxy send without a Host
// field. HTTP/1.1 requires one (RFC 9112 section 3.2).
func isHealthCheckOf10(h *fasthttp.RequestHeader) bool {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte("?"))
	return !h.IsHTTP11() && match(path).action(h.Method()) == healthCheck
}

// checkBody checks how the body is delimited.
func (f *framing) checkBody() *reply {
	hasLength, isChunked := f.seen&hasContentLength != 0, f.seen&hasTransferEncoding != 0
	_, isLength := number(f.contentLength)
	switch {
	case hasLength && isChunked:
		return twoLengths
	case hasLength && !isLength:
		return badLength
	case isChunked && !bytes.EqualFold(f.transferEncoding, []byte("chunked")):
		return badEncoding
	case f.seen&hasExpect != 0 && !bytes.EqualFold(f.expect, []byte(expect100Continue)):
		return badExpectation
	}
	return nil
}

// checkContent checks a body whose framing is valid.
func (f *framing) checkContent(h *fasthttp.RequestHeader, longest int) *reply {
	length, _ := number(f.contentLength)
	hasBody := f.seen&hasTransferEncoding != 0 || length > 0
	switch {
	case hasBody && (h.IsGet() || h.IsHead() || h.IsDelete()):
		return unexpectedBody
	case length > int64(longest):
		return tooLong
	case hasBody && f.seen&hasContentEncoding != 0 && !bytes.EqualFold(f.contentEncoding, []byte("identity")):
		return compressedBody
	}
	return nil
}

// isOfContent reports whether a reply is to a body that its method does not take. A path without the method has its own reply, whatever
// the body.
func isOfContent(r *reply) bool { return r == unexpectedBody || r == compressedBody }

// scan parses the raw header block line by line.
func (f *framing) scan(raw []byte) *reply {
	for lines := 0; len(raw) > 0; lines++ {
		end := bytes.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			return endsInLF
		}
		line := raw[:end-1]
		raw = raw[end+1:]
		if len(line) == 0 {
			return nil
		}
		if lines == maxHeaderLines {
			return tooManyHeaders
		}
		if r := f.scanLine(line); r != nil {
			return r
		}
	}
	return nil
}

func (f *framing) scanLine(line []byte) *reply {
	if line[0] == ' ' || line[0] == '\t' {
		return foldedHeader
	}
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found || !isToken(name) || !isFieldValue(value) {
		return malformedHeader
	}
	return f.addField(name, trimSpace(value))
}

// addField records a field that framing needs, and rejects names that are forbidden or repeated.
func (f *framing) addField(name, value []byte) *reply {
	var bit headerSet
	switch {
	case equalName(name, "content-length"):
		bit, f.contentLength = hasContentLength, value
	case equalName(name, "transfer-encoding"):
		bit, f.transferEncoding = hasTransferEncoding, value
	case equalName(name, "host"):
		bit = hasHost
	case equalName(name, "x-api-key"):
		if f.seen&hasAPIKey != 0 {
			return repeatedKey
		}
		bit = hasAPIKey
	case equalName(name, "expect"):
		bit, f.expect = hasExpect, value
	case equalName(name, "content-encoding"):
		bit, f.contentEncoding = hasContentEncoding, value
	case equalName(name, "content-type"):
		bit = hasContentType
	case equalName(name, "idempotency-key"):
		if len(value) == 0 {
			return emptyKey
		}
		bit = hasIdempotencyKey
	case equalName(name, "user-agent"):
		bit = hasUserAgent
	case equalName(name, "cookie"):
		bit = hasCookie
	case equalName(name, "origin"):
		bit = hasOrigin
	case equalName(name, "authorization"):
		bit = hasAuthorization
		if _, given := clientTokenOf(value); given {
			f.seen |= hasClientToken
		}
	case equalName(name, "trailer"):
		return trailerRefused
	}
	if f.seen&bit != 0 {
		return repeatedHeader
	}
	f.seen |= bit
	return nil
}

func equalName(name []byte, lower string) bool {
	return len(name) == len(lower) && bytes.EqualFold(name, []byte(lower))
}

// checkTarget accepts a path of plain characters without empty or dot segments. It decodes nothing, because no path of this
// service needs percent-encoding.
func checkTarget(target []byte) *reply {
	if len(target) == 0 || target[0] != '/' {
		return badTarget
	}
	path, query, _ := bytes.Cut(target, []byte("?"))
	for i, c := range path {
		if !isPathByte(c) || c == '/' && i > 0 && path[i-1] == '/' {
			return badPath
		}
	}
	for segment := range bytes.SplitSeq(path, []byte("/")) {
		if string(segment) == "." || string(segment) == ".." {
			return badPath
		}
	}
	for _, c := range query {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return badQuery
		}
	}
	return nil
}

// handleUnreadable answers a request that fasthttp could not parse.
func (e *Edge) handleUnreadable(ctx *fasthttp.RequestCtx, err error) {
	x := e.begin(ctx, time.Now())
	defer e.end(x)
	var tooBig *fasthttp.ErrSmallBuffer
	c := connOf(ctx)
	switch {
	case errors.As(err, &tooBig):
		x.writeReply(headersTooLong)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		x.route = match(x.path()) // the header was parsed
		x.writeReply(e.bodyTooLong)
	case c != nil && c.ReadTimedOut(): // fasthttp does not report every timeout as an error of its own
		x.writeReply(tooSlow)
	default:
		x.writeReply(unreadable)
	}
}
