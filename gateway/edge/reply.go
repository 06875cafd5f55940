package edge

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/wire"
)

// Codes that only the edge gives.
const (
	requestTimeout      wire.Code = "REQUEST_TIMEOUT"
	headersTooLarge     wire.Code = "HEADERS_TOO_LARGE"
	expectationFailed   wire.Code = "EXPECTATION_FAILED"
	clientClosedRequest wire.Code = "CLIENT_CLOSED_REQUEST"
	versionNotSupported wire.Code = "HTTP_VERSION_NOT_SUPPORTED"
)

const contentTypeJSON = "application/json"

// statusClientClosed is what nginx logs for a client that has left.
const statusClientClosed = 499

// reply is an answer of the gateway's own. One that is made ahead is shared and never changed.
type reply struct {
	status  int
	outcome outcome
	body    []byte
	// passing says that body lasts no longer than the exchange.
	passing bool
	// retryAfter is that header, in seconds, 0 for none.
	retryAfter int64
	// closes ends the connection, because what follows on it cannot be trusted.
	closes bool
	// headers are names and values in turn.
	headers []string
}

func newReply(status int, o outcome, code wire.Code, message string, headers ...string) *reply {
	return &reply{status: status, outcome: o, body: encode(wire.Error{Code: code, Message: message}), headers: headers}
}

func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies are this package's and wire's own types
	}
	return text
}

// refuseFraming makes the reply to a request that could be read in two ways.
func refuseFraming(status int, code wire.Code, message string) *reply {
	r := newReply(status, outcomeUnclear, code, message)
	r.closes = true
	return r
}

func badRequest(message string) *reply {
	return refuseFraming(fasthttp.StatusBadRequest, wire.InvalidRequest, message)
}

// unavailable makes the reply of a part that does not answer now: the client may try again in a second.
func unavailable(o outcome, message string) *reply {
	r := newReply(fasthttp.StatusServiceUnavailable, o, wire.ServiceUnavailable, message)
	r.retryAfter = 1
	return r
}

var (
	noKey = newReply(fasthttp.StatusUnauthorized, outcomeNoKey, wire.InvalidAPIKey,
		"Send your API key in the x-api-key header.", fasthttp.HeaderWWWAuthenticate, `ApiKey header="x-api-key"`)
	// The client is told the same of a malformed, unknown, disabled, expired and ownerless key; logs and metrics tell them apart.
	malformedKey = badKey(outcomeMalformedKey)
	// unknownKey is one that the filter of existing keys lacks, refusedKey one that core refuses.
	unknownKey = badKey(outcomeUnknownKey)
	refusedKey = badKey(outcomeRefusedKey)

	keysUnavailable    = unavailable(outcomeKeysUnavailable, "API keys cannot be checked now. Try again shortly.")
	limiterUnavailable = unavailable(outcomeLimiterUnavailable, "Rate limits cannot be checked now. Try again shortly.")
	notFound           = newReply(fasthttp.StatusNotFound, outcomeNotFound, wire.NotFound, "There is nothing at this path.")
	healthy            = &reply{status: fasthttp.StatusNoContent, outcome: outcomeOK}
	unhealthy          = unavailable(outcomeUnhealthy, "The service does not answer now. Try again shortly.")

	bodyTooLarge = newReply(fasthttp.StatusRequestEntityTooLarge, outcomeTooLarge, wire.PayloadTooLarge,
		"The body must not be longer than "+strconv.Itoa(wire.MaxTransferRequestBytes)+" bytes.")
	notJSON = newReply(fasthttp.StatusUnsupportedMediaType, outcomeMediaType, wire.UnsupportedMediaType,
		"The body must be application/json in UTF-8.")

	overloaded        = unavailable(outcomeOverloaded, "Too many long lists are under way, of all accounts together. Ask for pages with limit, or try again shortly.")
	accountOverloaded = unavailable(outcomeAccountOverloaded, "Too many lists of your account are under way. Read those first, ask for pages with limit, or try again shortly.")
	coreUnreachable   = unavailable(outcomeCoreUnreachable, "The service does not answer now; the request was not carried out. Try again shortly.")
	coreBroken        = unavailable(outcomeCoreBroken, "The service broke off while it answered; the request may have been carried out. "+
		"Repeat a write with the same Idempotency-Key only.")
	coreTimeout = newReply(fasthttp.StatusGatewayTimeout, outcomeCoreTimeout, wire.UpstreamTimeout,
		"The service did not answer in time; the request may have been carried out. "+
			"Repeat a write with the same Idempotency-Key only.")
	// clientGone is read by nobody but a client that has closed its sending side only.
	clientGone = newReply(statusClientClosed, outcomeClientGone, clientClosedRequest,
		"The client closed the connection before the answer; the request may have been carried out.")
	internalError = newReply(fasthttp.StatusInternalServerError, outcomePanic, wire.InternalError, "Something went wrong in the gateway.")
)

func badKey(o outcome) *reply {
	return newReply(fasthttp.StatusForbidden, o, wire.InvalidAPIKey,
		"This API key is not valid: it is unknown, expired, disabled, or its account no longer exists.")
}

// methodNotAllowed makes the reply of a route with these methods.
func methodNotAllowed(allow string) *reply {
	return newReply(fasthttp.StatusMethodNotAllowed, outcomeMethodNotAllowed, wire.MethodNotAllowed,
		"This path does not have this method.", fasthttp.HeaderAllow, allow)
}

// tooManyRequests refuses a request for d.RetryAfter. Retry-After is in whole seconds and tryAgainIn in milliseconds,
// both rounded up, so that a client that waits as told gets through. The reply is this exchange's own, and written by hand
// because refusals must stay cheap; message needs no escaping.
func (x *exchange) tooManyRequests(message string, d limit.Decision) *reply {
	body := x.scratch[:0]
	body = append(body, `{"code":"`...)
	body = append(body, wire.RateLimited...)
	body = append(body, `","message":"`...)
	body = append(body, message...)
	body = append(body, `","details":{"tryAgainIn":`...)
	body = strconv.AppendInt(body, max(1, ceil(d.RetryAfter, time.Millisecond)), 10)
	body = append(body, "}}"...)
	x.scratch = body
	x.refusal = reply{
		status:     fasthttp.StatusTooManyRequests,
		outcome:    outcomeRateLimited,
		body:       body,
		passing:    true,
		retryAfter: max(1, ceil(d.RetryAfter, time.Second)),
	}
	return &x.refusal
}

func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

var noStore = []byte("no-store")

// write makes the reply the client's answer.
func (r *reply) write(ctx *fasthttp.RequestCtx) {
	answer := &ctx.Response
	answer.ResetBody()
	answer.SetStatusCode(r.status)
	switch {
	case len(r.body) == 0:
	case r.passing:
		answer.SetBody(r.body)
	default:
		answer.SetBodyRaw(r.body)
	}
	if len(r.body) > 0 {
		answer.Header.SetContentType(contentTypeJSON)
	}
	answer.Header.SetCanonical(nameCacheControl, noStore)
	if r.retryAfter > 0 {
		var digits [20]byte
		answer.Header.SetCanonical(nameRetryAfter, strconv.AppendInt(digits[:0], r.retryAfter, 10))
	}
	for i := 0; i < len(r.headers); i += 2 {
		answer.Header.Set(r.headers[i], r.headers[i+1])
	}
	if r.closes {
		answer.SetConnectionClose()
	}
}
