package forward

import (
	"errors"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startAttemptSpan begins the span of one attempt, the first of which is 0. It is the request's own span where the trace is
// not sampled.
func (r *Request) startAttemptSpan(core *cores.Core, attempt int) tracing.Span {
	if !r.Span.Recording() {
		return r.Span
	}
	method := string(r.Ctx.Method())
	span := r.Span.Start(method+" "+r.Route, tracing.Client, tracing.RequestMethod(method), tracing.URLTemplate(r.Route))
	span.SetServer(core.Address)
	if attempt > 0 {
		span.Set(tracing.ResendCount(attempt))
	}
	return span
}

// endAttemptSpan ends the span with the response's status or the error. Where the response streams, the span ends with the
// body.
func (r *Request) endAttemptSpan(span tracing.Span, err error) {
	if !span.Recording() {
		return
	}
	if err != nil {
		span.Fail(failureOf(err))
		span.End()
		return
	}
	span.Answered(r.status())
	if r.stream != nil {
		span.Event(tracing.AnswerBegins)
		r.stream.trace = &streamTrace{attempt: span, request: r.Span}
		return
	}
	span.End()
}

// streamTrace are the spans of an exchange whose response streams.
type streamTrace struct{ attempt, request tracing.Span }

// status is the status of core's response.
func (r *Request) status() int {
	if r.stream != nil {
		return r.stream.Status()
	}
	return r.Ctx.Response.StatusCode()
}

// endTrace ends the attempt's span when its body ends: complete, by core's failure, or with the given failure. Core's failure
// is set on the request's span too.
func (s *Stream) endTrace(from *conn, failure string) {
	t := s.trace
	if t == nil {
		return
	}
	switch {
	case s.complete:
	case s.err != nil:
		cause := failureOf(from.wrapErr(s.err))
		t.attempt.Fail(cause)
		t.request.Fail("core_" + cause) // the outcomes have this prefix
	default:
		t.attempt.Fail(failure)
	}
	t.attempt.Set(tracing.ResponseBodySize(s.bytesRead))
	t.attempt.End()
}

func failureOf(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{ErrUnreachable, "unreachable"},
		{ErrBusy, "busy"},
		{ErrTimeout, "timeout"},
		{ErrClientGone, "client_gone"},
		{errUpstreamDown, "abandoned"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "broken"
}

// appendTrace appends the trace context: the gateway's own span, or where there is none the client's traceparent if it is well
// formed. Without a traceparent, tracestate has no meaning.
func appendTrace(b []byte, from *fasthttp.RequestHeader, span tracing.Span) []byte {
	if span.IsValid() {
		return appendSpan(b, span)
	}
	parents := from.PeekAll(tracing.HeaderTraceparent)
	if len(parents) != 1 || !tracing.IsTraceparent(parents[0]) {
		return b
	}
	b = appendHeader(b, tracing.HeaderTraceparent, parents[0])
	if states := from.PeekAll(tracing.HeaderTracestate); len(states) == 1 && len(states[0]) <= 512 {
		b = appendHeader(b, tracing.HeaderTracestate, states[0])
	}
	return b
}

// appendSpan also tells core that the sampled flag is the gateway's decision.
func appendSpan(b []byte, span tracing.Span) []byte {
	b = append(b, tracing.HeaderTraceparent+": "...)
	b = span.AppendTraceparent(b)
	b = append(b, "\r\n"+wire.HeaderTraceDecided+": 1\r\n"...)
	if state := span.Tracestate(); state != "" {
		b = appendHeader(b, tracing.HeaderTracestate, state)
	}
	return b
}
