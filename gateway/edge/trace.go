package edge

import (
	"bytes"
	"context"
	"net/http"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tracing"
)

// headerTraceparent is the header of W3C Trace Context; the other headers mean nothing without it.
const headerTraceparent = "Traceparent"

// maxTraceState is how many bytes of tracestate a service should propagate at least, by W3C Trace Context. Longer values are
// dropped.
const maxTraceState = 512

// traceHeaders is the propagator's view of a request's headers. A second traceparent makes both malformed.
type traceHeaders struct{ *fasthttp.RequestHeader }

// Get implements propagation.TextMapCarrier.
func (h traceHeaders) Get(name string) string {
	lines := bytes.Join(h.PeekAll(http.CanonicalHeaderKey(name)), []byte(","))
	if len(lines) > maxTraceState {
		return ""
	}
	return string(lines)
}

// Keys implements propagation.TextMapCarrier. TraceContext needs none.
func (traceHeaders) Keys() []string { return nil }

// clientSpan is the span in the client's W3C trace context. While tracing is off the gateway propagates it.
func clientSpan(h *fasthttp.RequestHeader) trace.Span {
	if len(h.Peek(headerTraceparent)) == 0 {
		return tracing.Noop
	}
	return trace.SpanFromContext(propagation.TraceContext{}.Extract(context.Background(), traceHeaders{h}))
}

// startTrace starts the request's span as a child of the client's. Only the ids of the client's span are used: the gateway
// decides on sampling.
func (e *Edge) startTrace(x *exchange) {
	if e.tracer != nil {
		_, x.span = e.tracer.Start(trace.ContextWithSpan(context.Background(), x.span), x.route.pattern, false, x.began)
	}
}

// endTrace copies the fields of the access log to the span and ends it. If the response streams, the end of its body ends the
// span.
func (x *exchange) endTrace() {
	if !x.span.IsRecording() {
		return
	}
	r := tracing.Request{
		Method: string(x.method()), Scheme: x.proto, ID: string(x.id),
		Status: x.ctx.Response.StatusCode(), Outcome: x.outcome.String(),
	}
	if x.route != unknownPath { // not a path
		r.Route = x.route.pattern
	}
	if x.verdict != nil {
		r.KeyID, r.Environment = x.verdict.KeyID(), string(x.verdict.Environment())
	}
	if r.Status >= 500 {
		r.Failure = r.Outcome
	}
	tracing.SetRequest(x.span, r)
	if _, streams := x.ctx.Response.BodyStream().(*streamedList); !streams {
		x.span.End()
	}
}
