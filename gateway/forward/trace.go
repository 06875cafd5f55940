package forward

import (
	"errors"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startAttempt begins the span of one attempt, the first of which is 0. In a trace that is not sampled it is the request's
// own, which passes the trace on.
func (r *Request) startAttempt(core *cores.Core, attempt int) tracing.Span {
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

// endAttempt ends it with the answer's status, or why there was none. Where the answer streams it goes on until the body has
// been passed on.
func (r *Request) endAttempt(span tracing.Span, err error) {
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

// streamTrace are the spans of an exchange whose answer streams. It lives as long as the body, which outlasts the exchange.
type streamTrace struct{ attempt, request tracing.Span }

// status is that of core's answer.
func (r *Request) status() int {
	if r.stream != nil {
		return r.stream.Status()
	}
	return r.Ctx.Response.StatusCode()
}

// endTrace ends the attempt when its body ends: by the last of it, by core's fault, or unread. Core's fault is the request's
// too, which has its status already.
func (s *Stream) endTrace(from *conn, unread string) {
	t := s.trace
	if t == nil {
		return
	}
	switch {
	case s.whole:
	case s.broken != nil:
		failure := failureOf(from.cause(s.broken))
		t.attempt.Fail(failure)
		t.request.Fail("core_" + failure) // as outcomes are called
	default:
		t.attempt.Fail(unread)
	}
	t.attempt.Set(tracing.ResponseBodySize(s.passed))
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
		{errAbandoned, "abandoned"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "broken"
}

// appendTrace passes the trace on: as the gateway's own span, or where it makes none a W3C trace context of the client's,
// if that is well formed. Without a traceparent, tracestate means nothing.
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

// appendSpan tells core besides that the sampled flag is not the client's.
func appendSpan(b []byte, span tracing.Span) []byte {
	b = append(b, tracing.HeaderTraceparent+": "...)
	b = span.AppendTraceparent(b)
	b = append(b, "\r\n"+wire.HeaderTraceDecided+": 1\r\n"...)
	if state := span.Tracestate(); state != "" {
		b = appendHeader(b, tracing.HeaderTracestate, state)
	}
	return b
}
