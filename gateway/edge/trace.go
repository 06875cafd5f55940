package edge

import (
	"log/slog"

	"intents.internal/pkg/tracing"
)

// startTrace begins the request's span, below the parent in a client's W3C trace context. Only the ids are taken from the
// client; the gateway decides what is sampled.
func (e *Edge) startTrace(x *exchange) {
	if e.tracer == nil {
		return
	}
	h := &x.ctx.Request.Header
	var own [1][]byte // fasthttp overwrites this list with the next
	parents := own[:0]
	if lines := h.PeekAll(tracing.HeaderTraceparent); len(lines) == 1 {
		parents = append(parents, lines[0])
	}
	x.span = e.tracer.Serve(x.route.pattern, tracing.ReadParent(parents, h.PeekAll(tracing.HeaderTracestate)), false, x.began)
}

// endTrace sets the span's attributes, those of the access log, and ends it. Where the response streams, the span ends with
// the body.
func (x *exchange) endTrace() {
	if !x.span.Recording() {
		return
	}
	method, status := methodName(x.method()), x.ctx.Response.StatusCode()
	switch {
	case method == otherMethod:
		x.span.Name("HTTP " + x.route.pattern)
		method = "_OTHER"
	case x.route == unknownPath: // not a path
		x.span.Name(method)
	default:
		x.span.Name(method + " " + x.route.pattern)
	}
	if x.route != unknownPath {
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
	if _, streams := x.ctx.Response.BodyStream().(*streamedList); streams {
		return // the body ends the span
	}
	x.span.End()
}

// appendTraceIDs appends the trace ids of the request to its log line: the span's, or the client's trace id without a tracer.
func (x *exchange) appendTraceIDs(to []slog.Attr) []slog.Attr {
	if x.span.IsValid() {
		return append(to, slog.String("trace_id", x.span.TraceID()), slog.String("span_id", x.span.SpanID()))
	}
	if id := tracing.TraceIDOf(x.ctx.Request.Header.PeekAll(tracing.HeaderTraceparent)); id != "" {
		to = append(to, slog.String("trace_id", id))
	}
	return to
}
