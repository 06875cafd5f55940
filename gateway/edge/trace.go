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

// headerTraceparent is the header of W3C Trace Context without which the others have no meaning.
const headerTraceparent = "Traceparent"

// maxTraceState is how many bytes of tracestate W3C Trace Context has a service pass on. Longer ones are dropped.
const maxTraceState = 512

// traceHeaders are the headers of a request as a propagator reads them. A second traceparent makes both malformed.
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

// clientSpan is the span that the client's W3C trace context names. While tracing is off the gateway passes it on.
func clientSpan(h *fasthttp.RequestHeader) trace.Span {
	if len(h.Peek(headerTraceparent)) == 0 {
		return tracing.Noop
	}
	return trace.SpanFromContext(propagation.TraceContext{}.Extract(context.Background(), traceHeaders{h}))
}

// startTrace starts the request's span below the client's, of which only the ids are believed: the gateway decides what is
// sampled.
func (e *Edge) startTrace(x *exchange) {
	if e.tracer != nil {
		_, x.span = e.tracer.Start(trace.ContextWithSpan(context.Background(), x.span), x.route.pattern, false, x.began)
	}
}

// endTrace sets on the span what the access log has of the request and ends it; if the response streams, the end of its
// body ends the span.
func (x *exchange) endTrace() {
	if !x.span.IsRecording() {
		return
	}
	r := tracing.Request{
		Method: string(x.method()), Scheme: x.proto, ID: string(x.id),
		Status: x.ctx.Response.StatusCode(), Outcome: x.outcome.String(),
	}
	if x.route != unknownPath { // which is no path
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
