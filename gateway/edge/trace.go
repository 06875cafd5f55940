package edge

import (
	"log/slog"

	"intents.internal/pkg/tracing"
)

// startTrace begins the request's span, below the one that a client's W3C trace context names. What the client wrote there
// is not believed but for the ids: it is the gateway that decides what is sampled.
func (e *Edge) startTrace(x *exchange) {
	if e.tracer == nil {
		return
	}
	h := &x.ctx.Request.Header
	var own [1][]byte // fasthttp gives the next list in the place of the one before
	parents := own[:0]
	if lines := h.PeekAll(tracing.HeaderTraceparent); len(lines) == 1 {
		parents = append(parents, lines[0])
	}
	x.span = e.tracer.Serve(x.route.pattern, tracing.ReadParent(parents, h.PeekAll(tracing.HeaderTracestate)), false, x.began)
}

// endTrace has the span tell what has become known of the request, as the access log does, and ends it; where the answer
// streams, once that has been written.
func (x *exchange) endTrace() {
	if !x.span.Recording() {
		return
	}
	method, status := methodName(x.method()), x.ctx.Response.StatusCode()
	switch {
	case method == otherMethod:
		x.span.Name("HTTP " + x.route.pattern)
		method = "_OTHER"
	case x.route == openElse: // which is no path
		x.span.Name(method)
	default:
		x.span.Name(method + " " + x.route.pattern)
	}
	if x.route != openElse {
		x.span.Set(tracing.Route(x.route.pattern))
	}
	x.span.Set(tracing.RequestMethod(method), tracing.ResponseStatus(status), tracing.RequestID(string(x.id)),
		tracing.Outcome(x.outcome.String()))
	if x.proto != "" {
		x.span.Set(tracing.URLScheme(x.proto))
	}
	if x.verdict != nil {
		x.span.Set(tracing.KeyID(x.verdict.KeyID()), tracing.Environment(string(x.verdict.Environment())))
	}
	if status >= 500 {
		x.span.Fail(x.outcome.String())
	}
	if _, streams := x.ctx.Response.BodyStream().(*longList); streams {
		return // which ends it
	}
	x.span.End()
}

// appendTraceIDs adds the ids of the request's trace to those of its log line: its own span's, or the client's trace where
// the gateway makes no spans.
func (x *exchange) appendTraceIDs(to []slog.Attr) []slog.Attr {
	if x.span.IsValid() {
		return append(to, slog.String("trace_id", x.span.TraceID()), slog.String("span_id", x.span.SpanID()))
	}
	if id := tracing.TraceIDOf(x.ctx.Request.Header.PeekAll(tracing.HeaderTraceparent)); id != "" {
		to = append(to, slog.String("trace_id", id))
	}
	return to
}
