package control

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/upstream/cores"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startSpan starts the span of one attempt at one core if the request is traced, and adds the trace context to the request's
// headers.
func startSpan(ctx context.Context, core *cores.Core, r request, header http.Header) trace.Span {
	path, _, _ := strings.Cut(r.target, "?")
	span := tracing.StartRequest(trace.SpanFromContext(ctx), r.method, path, core.Address)
	if c := span.SpanContext(); c.IsValid() && !c.IsRemote() {
		propagation.TraceContext{}.Inject(trace.ContextWithSpan(ctx, span), propagation.HeaderCarrier(header))
		header.Set(wire.HeaderTraceDecided, "1")
	}
	return span
}

// endSpan ends the span with the response's status or the error.
func endSpan(span trace.Span, status int, err error) {
	reason := "broken"
	switch {
	case err == nil:
		tracing.SetResponse(span, status)
	case isDialError(err):
		reason = "unreachable"
	}
	tracing.End(span, err, reason)
}
