package upstream

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/wire"
)

// outcome is what became of a request at one core, and so what follows.
type outcome int

const (
	// answered: the response is the request's.
	answered outcome = iota
	// final: the error is the request's, and no other attempt would change it.
	final
	// notCarriedOut: the core has done nothing of the request, which any core may get.
	notCarriedOut
	// noBatches: the same, and the core serves no batches, so that the request is sent alone.
	noBatches
	// unknown: the core may have carried the request out, which must not be sent again.
	unknown
	// repeatable: the core may have carried the request out, which is harmless to send again.
	repeatable
)

// speaker is who has made a response.
type speaker int

const (
	// byProxy: the response has no wire.HeaderCore.
	byProxy speaker = iota
	// byCore: core says that the response is the result of the request.
	byCore
	// byRefusingCore: core says that it has carried nothing of the request out.
	byRefusingCore
)

// attempt is what came of a request at one core.
type attempt struct {
	// sent is set if the core may have received a part of the request.
	sent bool
	// status is that of the response, 0 if none has arrived; by is who has made it.
	status int
	by     speaker
	// batch is set if the response is to a batch as a whole, which has none of the members' responses.
	batch bool
	// err is why there is no complete response, nil if there is one.
	err error
}

// isFailure reports whether an attempt says that its core fails: a status of 500 or above, whoever made it, a refusal, or no response.
// A client that has gone, a full pool and a deadline that was used up elsewhere say nothing of the core.
func (a attempt) isFailure() bool {
	switch {
	case a.err == nil:
		return a.by == byRefusingCore || a.status >= fasthttp.StatusInternalServerError
	case errors.Is(a.err, ErrClientGone), errors.Is(a.err, ErrBusy), errors.Is(a.err, errNoTime), errors.Is(a.err, errGivenBack):
		return false
	default:
		return true
	}
}

// decide is the one rule of what becomes of a request, alone or in a batch, and whether it may be sent again: only if it was not sent, if core
// itself says that it has not carried it out, or if it is replayable. The error is nil if the response is the request's.
//
// A proxy between gateway and core may answer with any status after core has received the request, so what it says is no outcome.
func decide(a attempt, replayable bool) (outcome, error) {
	switch {
	case errors.Is(a.err, ErrClientGone):
		return final, a.err
	case a.by == byRefusingCore && a.batch && a.status == fasthttp.StatusNotFound:
		return noBatches, errRefused
	case a.by == byRefusingCore && a.status == fasthttp.StatusUnauthorized:
		return notCarriedOut, errSecretRejected
	case a.by == byRefusingCore:
		return notCarriedOut, errRefused
	case !a.sent:
		return notCarriedOut, a.err
	case errors.Is(a.err, errInvalidResponse):
		return final, a.err
	case a.err == nil && a.by == byCore && !a.batch:
		return answered, nil
	}
	err := a.err
	switch {
	case errors.Is(err, errUpstreamDown), err == nil && a.status == fasthttp.StatusGatewayTimeout:
		err = ErrTimeout
	case err == nil:
		err = errNotCore
	}
	if replayable {
		return repeatable, err
	}
	return unknown, err
}

var (
	// errRefused means that the core has said that it did not carry the request out.
	errRefused = fmt.Errorf("%w: it refused the request", ErrUnreachable)
	// errSecretRejected is errRefused because of the shared secret. The probe logs why.
	errSecretRejected = fmt.Errorf("%w: it rejects GATEWAY_CORE_SECRET", ErrUnreachable)
	// errNotCore means that a proxy before the core has answered in its place.
	errNotCore = fmt.Errorf("%w: a proxy before it answered", ErrBroken)
)

// markUnsent ejects a core because of a request that it did not carry out, if that is the core's failure.
func markUnsent(core *cores.Core, cause error) {
	switch {
	case errors.Is(cause, errGivenBack): // it is ejected already
	case errors.Is(cause, errNoTime), errors.Is(cause, ErrBusy), errors.Is(cause, errRefused):
		core.ProbeNow()
	case errors.Is(cause, errSecretRejected):
		core.MarkFailed()
	default:
		core.MarkUnreachable(cause)
	}
}

// markUnanswered ejects a core because of a request that was sent and not answered, if the core had the time for it.
func markUnanswered(core *cores.Core, cause error, hadTime bool) {
	switch {
	case errors.Is(cause, errUpstreamDown): // it is ejected already
	case hadTime:
		core.MarkFailed()
	default:
		core.ProbeNow()
	}
}

// speakerOf returns who has made the response with this header to a request that was sent alone.
func speakerOf(head *fasthttp.ResponseHeader, session bool) speaker {
	if head.StatusCode() < fasthttp.StatusMultipleChoices {
		return byCore // a proxy makes no success
	}
	by := markOf(head)
	if by == byProxy && isUnmarkedCore(head, session) {
		return byCore
	}
	return by
}

// markOf returns who has made the response, as wire.HeaderCore says.
func markOf(head *fasthttp.ResponseHeader) speaker {
	switch string(head.Peek(wire.HeaderCore)) {
	case wire.CoreAnswered:
		return byCore
	case wire.CoreRefused:
		return byRefusingCore
	default:
		return byProxy
	}
}

var jsonType = []byte("application/json")

// isUnmarkedCore reports whether a response of status 300 or above without wire.HeaderCore is taken for one of a core of release 0.1.0, which
// does not set it: one that is no sign of failure, and, on routes without pages, in JSON, as no proxy makes it.
func isUnmarkedCore(head *fasthttp.ResponseHeader, session bool) bool {
	switch status := head.StatusCode(); {
	case status == fasthttp.StatusNotModified:
		return true
	case status >= fasthttp.StatusInternalServerError:
		return false
	default:
		return session || status != fasthttp.StatusUnauthorized && bytes.HasPrefix(head.ContentType(), jsonType)
	}
}
