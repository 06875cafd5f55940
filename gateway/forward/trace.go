package forward

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startAttempt starts the span of one attempt, the first of which is 0. In a trace that is not sampled it is the request's
// own, which passes the trace on.
func (r *Request) startAttempt(core *cores.Core, attempt int) trace.Span {
	if !r.Span.IsRecording() {
		return r.Span
	}
	span := tracing.StartRequest(r.Span, string(r.Ctx.Method()), r.Route, core.Address)
	if attempt > 0 {
		span.SetAttributes(semconv.HTTPRequestResendCount(attempt))
	}
	return span
}

// endAttempt ends the span with the response's status, or why there is none. The end of a streamed body ends it later.
func (r *Request) endAttempt(span trace.Span, err error) {
	switch {
	case !span.IsRecording():
	case err != nil:
		tracing.Fail(span, errorType(err))
		span.End()
	case r.stream != nil:
		tracing.SetResponse(span, r.stream.Status())
		span.AddEvent(tracing.ResponseStarted)
		r.stream.attempt, r.stream.request = span, r.Span
	default:
		tracing.SetResponse(span, r.Ctx.Response.StatusCode())
		span.End()
	}
}

// endTrace ends the attempt when its body ends: by the last of it, by core's fault, or unread. A fault of core's also fails
// the request, which has its status already.
func (s *Stream) endTrace(from *conn, unread string) {
	switch {
	case s.attempt == nil:
		return
	case s.whole:
	case s.broken != nil:
		fault := errorType(from.cause(s.broken))
		tracing.Fail(s.attempt, fault)
		tracing.Fail(s.request, "core_"+fault) // as outcomes are called
	default:
		tracing.Fail(s.attempt, unread)
	}
	s.attempt.SetAttributes(semconv.HTTPResponseBodySizeKey.Int64(s.passed))
	s.attempt.End()
}

func errorType(err error) string {
	switch {
	case errors.Is(err, ErrUnreachable):
		return "unreachable"
	case errors.Is(err, ErrBusy):
		return "busy"
	case errors.Is(err, ErrTimeout):
		return "timeout"
	case errors.Is(err, ErrClientGone):
		return "client_gone"
	case errors.Is(err, errAbandoned):
		return "abandoned"
	default:
		return "broken"
	}
}

// headerWriter is a request's head to which a propagator adds headers.
type headerWriter struct {
	propagation.MapCarrier
	head []byte
}

// Set implements propagation.TextMapCarrier.
func (w *headerWriter) Set(name, value string) { w.head = appendHeader(w.head, name, value) }

// appendTrace passes the trace on: the gateway's, which tells core that the sampled flag is not the client's, or while
// tracing is off the client's.
func appendTrace(b []byte, span trace.Span) []byte {
	c := span.SpanContext()
	if !c.IsValid() {
		return b
	}
	w := &headerWriter{head: b}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), w)
	if !c.IsRemote() {
		w.Set(wire.HeaderTraceDecided, "1")
	}
	return w.head
}
