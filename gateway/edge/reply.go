package edge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/limit"
	"intents.internal/gateway/polls"
	"intents.internal/pkg/wire"
)

// Error codes that only the edge uses.
const (
	requestTimeout      wire.Code = "REQUEST_TIMEOUT"
	headersTooLarge     wire.Code = "HEADERS_TOO_LARGE"
	expectationFailed   wire.Code = "EXPECTATION_FAILED"
	clientClosedRequest wire.Code = "CLIENT_CLOSED_REQUEST"
	versionNotSupported wire.Code = "HTTP_VERSION_NOT_SUPPORTED"
)

const contentTypeJSON = "application/json"

// statusClientClosed is nginx's status for a client that disconnected.
const statusClientClosed = 499

// reply is a response of the gateway itself. Shared replies are immutable.
type reply struct {
	status  int
	outcome outcome
	// body lacks the request's id, which write adds; empty for none.
	body []byte
	// retryAfter is the least Retry-After in seconds, 0 for none.
	retryAfter int
	// closes ends the connection, because the bytes that follow cannot be parsed safely.
	closes bool
	// number is the index of a reply that closes in malformedReplies.
	number int
	// headers alternates names and values.
	headers []string
}

func newReply(status int, o outcome, code wire.Code, message string, headers ...string) *reply {
	return &reply{status: status, outcome: o, body: encode(wire.Error{Code: code, Message: message}), headers: headers}
}

func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // cannot fail: the bodies are types of this package and of wire
	}
	return text
}

// malformed returns the reply to a request that two parsers could read differently.
func malformed(status int, code wire.Code, message string) *reply {
	return early(newReply(status, outcomeMalformedRequest, code, message))
}

// malformedReplies are the replies by number.
var malformedReplies []*reply

// early returns a reply that does not wait for the request's body, and so closes the connection.
func early(r *reply) *reply {
	r.closes, r.number = true, len(malformedReplies)
	malformedReplies = append(malformedReplies, r)
	return r
}

func badRequest(message string) *reply {
	return malformed(fasthttp.StatusBadRequest, wire.InvalidRequest, message)
}

// unavailable returns the 503 for a dependency that does not respond; the client may retry after a second at least.
func unavailable(o outcome, message string) *reply {
	r := newReply(fasthttp.StatusServiceUnavailable, o, wire.ServiceUnavailable, message)
	r.retryAfter = 1
	return r
}

var (
	noKey = newReply(fasthttp.StatusUnauthorized, outcomeNoKey, wire.InvalidAPIKey,
		"Send your API key in the x-api-key header.", fasthttp.HeaderWWWAuthenticate, `ApiKey header="x-api-key"`)
	// All bad keys get the same response: malformed, unknown, disabled, expired or without an account. Logs and metrics
	// distinguish them.
	malformedKey = badKey(outcomeMalformedKey)
	// unknownKey is the reply to a key that is not in the filter of existing keys, refusedKey to one that core rejects.
	unknownKey = badKey(outcomeUnknownKey)
	refusedKey = badKey(outcomeRefusedKey)

	keysUnavailable    = unavailable(outcomeKeysUnavailable, "API keys cannot be checked now. Try again shortly.")
	limiterUnavailable = unavailable(outcomeLimiterUnavailable, "Rate limits cannot be checked now. Try again shortly.")
	notFound           = newReply(fasthttp.StatusNotFound, outcomeNotFound, wire.NotFound, "There is nothing at this path.")
	healthy            = &reply{status: fasthttp.StatusNoContent, outcome: outcomeOK}
	unhealthy          = unavailable(outcomeUnhealthy, "The service does not answer now. Try again shortly.")

	transferTooLarge       = bodyTooLarge(wire.MaxTransferRequestBytes)
	transferBatchTooLarge  = bodyTooLarge(wire.MaxTransferBatchBytes)
	quoteRequestTooLarge   = bodyTooLarge(wire.MaxQuoteRequestBytes)
	idempotencyKeyRequired = &reply{status: fasthttp.StatusBadRequest, outcome: outcomeInvalid, body: encode(wire.NewIdempotencyKeyRequired())}
	notJSON                = newReply(fasthttp.StatusUnsupportedMediaType, outcomeMediaType, wire.UnsupportedMediaType,
		"The body must be application/json in UTF-8.")

	overloaded        = unavailable(outcomeOverloaded, "Too many long lists are in flight for all accounts together. Request pages with limit, or try again shortly.")
	accountOverloaded = unavailable(outcomeAccountOverloaded, "Too many lists of your account are in flight. Read those to the end, request pages with limit, or try again shortly.")
	keyPolls          = pollRefused(fmt.Sprintf("This key has %d requests for events that wait, which is as many as it may have. Try again when one has been answered.", polls.MaxPerKey))
	accountPolls      = pollRefused(fmt.Sprintf("Your account has %d requests for events that wait, which is as many as it may have. Try again when one has been answered.", polls.MaxPerAccount))
	allPolls          = pollRefused("Too many requests of all accounts together wait for events. Try again shortly, or ask without wait.")
	keyQuotes         = tooManyQuotes(outcomeRateLimited, "This key has as many requests for quotes in flight as it may have. Try again when one has been answered.")
	accountQuotes     = tooManyQuotes(outcomeAccountRateLimited, "Your account has as many requests for quotes in flight as it may have. Try again when one has been answered.")
	allQuotes         = unavailable(outcomeOverloaded, "Too many requests for quotes are in flight for all accounts together. Try again shortly.")
	coreUnreachable   = unavailable(outcomeCoreUnreachable, "The service does not answer now; the request was not carried out. Try again shortly.")
	// coreBroken and coreTimeout are the replies to reads.
	coreBroken  = unavailable(outcomeCoreBroken, "The service broke off while it answered. Try again shortly.")
	coreTimeout = newReply(fasthttp.StatusGatewayTimeout, outcomeCoreTimeout, wire.UpstreamTimeout, "The service did not answer in time. Try again.")
	brokenWrite = newOutcomeUnknown(fasthttp.StatusServiceUnavailable, outcomeCoreBroken, "The service broke off while it answered")
	lateWrite   = newOutcomeUnknown(fasthttp.StatusGatewayTimeout, outcomeCoreTimeout, "The service did not answer in time")
	// clientGone is visible only to a client that has closed just its sending side.
	clientGone = newReply(statusClientClosed, outcomeClientGone, clientClosedRequest,
		"The client closed the connection before the response; the request may have been carried out.")
	internalError = newReply(fasthttp.StatusInternalServerError, outcomePanic, wire.InternalError,
		"The gateway failed; the request may have been carried out. Repeat a write with the same Idempotency-Key only.")
)

// newOutcomeUnknown returns the replies to a write that core may have carried out. Only the one for a write that core carries out
// once has a Retry-After, because a client that obeys it would carry out the others twice.
func newOutcomeUnknown(status int, o outcome, cause string) outcomeUnknown {
	cause += "; the request may have been carried out. "
	u := outcomeUnknown{
		once: newReply(status, o, wire.OutcomeUnknown, cause+"Repeat it with the same Idempotency-Key, which carries it out at most once."),
		other: newReply(status, o, wire.OutcomeUnknown, cause+"Look for what it would have made or changed before you repeat it; "+
			"repeat a write with the same Idempotency-Key only."),
	}
	u.once.retryAfter = 1
	return u
}

type outcomeUnknown struct{ once, other *reply }

// of returns the reply to a request, which is read if it is no write. A request for quotes is none: a quote binds nobody, so that the
// client may repeat the request whatever became of it.
func (u outcomeUnknown) of(x *exchange, read *reply) *reply {
	switch {
	case !x.request.IsWrite(), x.route == quotes:
		return read
	case x.request.IsReplayable():
		return u.once
	default:
		return u.other
	}
}

func badKey(o outcome) *reply {
	return newReply(fasthttp.StatusForbidden, o, wire.InvalidAPIKey,
		"This API key is not valid: it is unknown, expired, disabled, or its account no longer exists.")
}

func bodyTooLarge(most int) *reply {
	return &reply{status: fasthttp.StatusRequestEntityTooLarge, outcome: outcomeTooLarge, body: encode(wire.NewPayloadTooLarge(most))}
}

// closing makes a reply end the connection and count as malformed_request, since the body that follows is not read.
func closing(r *reply) *reply {
	r.closes, r.outcome = true, outcomeMalformedRequest
	return r
}

// tooManyQuotes returns the 429 for a request for quotes over a bound. All those in flight have ended when its wait is over.
func tooManyQuotes(o outcome, message string) *reply {
	return &reply{
		status:  fasthttp.StatusTooManyRequests,
		outcome: o,
		body: encode(wire.Error{
			Code: wire.RateLimited, Message: message, Details: wire.RateLimitDetails{TryAgainIn: wire.MaxQuoteWait.Milliseconds()},
		}),
		retryAfter: int(ceil(wire.MaxQuoteWait, time.Second)),
	}
}

func pollRefused(message string) *reply {
	r := newReply(fasthttp.StatusTooManyRequests, outcomeTooManyPolls, wire.TooManyPolls, message)
	r.retryAfter = 1
	return r
}

// methodNotAllowed returns the 405 of a route with these methods.
func methodNotAllowed(allow string) *reply {
	return newReply(fasthttp.StatusMethodNotAllowed, outcomeMethodNotAllowed, wire.MethodNotAllowed,
		"This path does not have this method.", fasthttp.HeaderAllow, allow)
}

// Messages of a 429. They need no escaping.
const (
	keyLimited   = "Too many requests were made with this key. Wait as long as Retry-After says, then try again."
	tokenLimited = "Too many requests were made with client tokens of this transfer. Wait as long as Retry-After says, then try again."
	// accountLimited names an environment, since each has its own bucket.
	accountLimited = "Too many requests were made with all keys of this account in this environment together. " +
		"Wait as long as Retry-After says, then try again."
)

// newTooManyRequests returns the reply to a request that a rate limit refuses. Retry-After is in whole seconds and tryAgainIn in
// milliseconds, both rounded up, so that a client that waits for this long is admitted. The message is for a refusal by the key's bucket. The body is
// encoded by hand, and into the empty buffer body, because refusals must stay cheap.
func newTooManyRequests(d *limit.Decision, message string, body []byte) reply {
	outcome := outcomeRateLimited
	if d.ByAccount() {
		message, outcome = accountLimited, outcomeAccountRateLimited
	}
	body = append(body, `{"code":"`+wire.RateLimited+`","message":"`...)
	body = append(body, message...)
	body = append(body, `","details":{"tryAgainIn":`...)
	body = strconv.AppendInt(body, max(1, ceil(d.Wait(), time.Millisecond)), 10)
	body = append(body, "}}"...)
	return reply{
		status:     fasthttp.StatusTooManyRequests,
		outcome:    outcome,
		body:       body,
		retryAfter: int(max(1, ceil(d.Wait(), time.Second))),
	}
}

func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

var noStore = []byte("no-store")

// forbidCaching forbids caches to keep a response (RFC 9111 section 5.2.2.5).
func forbidCaching(h *fasthttp.ResponseHeader) { h.SetCanonical(nameCacheControl, noStore) }

// write sets the reply as the client's response.
func (r *reply) write(x *exchange) {
	response := &x.ctx.Response
	response.ResetBody()
	response.SetStatusCode(r.status)
	if len(r.body) > 0 {
		response.SetBodyRaw(wire.AppendErrorBody(x.replyBuffer(), r.body, x.id))
		response.Header.SetContentType(contentTypeJSON)
	}
	forbidCaching(&response.Header)
	if r.retryAfter > 0 {
		var digits [20]byte
		response.Header.SetCanonical(nameRetryAfter, strconv.AppendInt(digits[:0], int64(wire.RetryAfter(r.status, r.retryAfter)), 10))
	}
	for i := 0; i < len(r.headers); i += 2 {
		response.Header.Set(r.headers[i], r.headers[i+1])
	}
	if r.closes {
		response.SetConnectionClose()
	}
}
