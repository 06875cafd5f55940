package upstream

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

// startSpan starts the span of the exchange with core. In a trace that is not sampled it returns the request's own span, which
// propagates the trace.
func (r *Request) startSpan() trace.Span {
	if !r.Span.IsRecording() {
		return r.Span
	}
	return tracing.StartRequest(r.Span, string(r.Client.Header.Method()), r.Route)
}

// setCore sets the core that gets the request, and how often it was sent to another before.
func setCore(span trace.Span, core *cores.Core, resent int) {
	if !span.IsRecording() {
		return
	}
	tracing.SetAddress(span, core.Address)
	if resent > 0 {
		span.SetAttributes(semconv.HTTPRequestResendCount(resent))
	}
}

// endSpan ends the exchange's span with the response's status or the error. The end of a streamed body ends it later.
func endSpan(span, request trace.Span, p *Response, err error) {
	switch {
	case !request.IsRecording():
		return
	case err != nil:
		tracing.Fail(span, errorType(err))
		span.End()
		return
	}
	tracing.SetResponse(span, p.Status())
	if p.Stream == nil {
		span.End()
		return
	}
	span.AddEvent(tracing.ResponseStarted)
	p.Stream.span, p.Stream.request = span, request
}

// endSpan ends the span when the body ends: complete, with core's failure, or with the given failure. Core's failure is also set on
// the request's span.
func (s *Stream) endSpan(failure string) {
	switch {
	case s.span == nil:
		return
	case s.complete:
	case s.err != nil:
		cause := errorType(s.exchange.conn.wrapErr(s.err))
		tracing.Fail(s.span, cause)
		tracing.Fail(s.request, "core_"+cause) // the outcomes have this prefix
	default:
		tracing.Fail(s.span, failure)
	}
	s.span.SetAttributes(semconv.HTTPResponseBodySizeKey.Int64(s.bytesRead))
	s.span.End()
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
	default:
		return "broken"
	}
}

// headerWriter is a request's head to which a propagator adds headers.
type headerWriter struct {
	propagation.MapCarrier
	head []byte
	as   form
}

// Set implements propagation.TextMapCarrier.
func (w *headerWriter) Set(name, value string) { w.head = appendField(w.head, w.as, name, value) }

// appendTrace appends the trace context. While tracing is on it is the gateway's, which tells core that the gateway decided on
// the sampled flag; otherwise it is the client's.
func appendTrace(b []byte, as form, span trace.Span) []byte {
	c := span.SpanContext()
	if !c.IsValid() {
		return b
	}
	w := &headerWriter{head: b, as: as}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), w)
	if !c.IsRemote() {
		w.Set(wire.HeaderTraceDecided, "1")
	}
	return w.head
}
