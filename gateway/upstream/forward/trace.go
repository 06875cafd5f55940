package forward

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/upstream/cores"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startAttemptSpan starts the span of one attempt; the first attempt is 0. In a trace that is not sampled it returns the
// request's own span, which propagates the trace.
func (r *Request) startAttemptSpan(core *cores.Core, attempt int) trace.Span {
	if !r.Span.IsRecording() {
		return r.Span
	}
	span := tracing.StartRequest(r.Span, string(r.Ctx.Method()), r.Route, core.Address)
	if attempt > 0 {
		span.SetAttributes(semconv.HTTPRequestResendCount(attempt))
	}
	return span
}

// endAttemptSpan ends the span with the response's status or the error. The end of a streamed body ends it later.
func (r *Request) endAttemptSpan(span trace.Span, err error) {
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

// endTrace ends the attempt's span when its body ends: complete, with core's failure, or with the given failure. Core's failure
// is also set on the request's span.
func (s *Stream) endTrace(from *coreConn, failure string) {
	switch {
	case s.attempt == nil:
		return
	case s.complete:
	case s.err != nil:
		cause := errorType(from.wrapErr(s.err))
		tracing.Fail(s.attempt, cause)
		tracing.Fail(s.request, "core_"+cause) // the outcomes have this prefix
	default:
		tracing.Fail(s.attempt, failure)
	}
	s.attempt.SetAttributes(semconv.HTTPResponseBodySizeKey.Int64(s.bytesRead))
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
	case errors.Is(err, errUpstreamDown):
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

// appendTrace appends the trace context. While tracing is on it is the gateway's, which tells core that the gateway decided on
// the sampled flag; otherwise it is the client's.
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
