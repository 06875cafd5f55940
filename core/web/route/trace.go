package route

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// traceParent is the header that has the caller's span (W3C Trace Context).
const traceParent = "Traceparent"

// startTrace starts the span of a request as a child of the gateway's, and adds the request and trace ids to its log lines. The
// gateways' routine requests start no trace. Neither do requests without a route, whose headers are not trusted. The request gets the context.
func (x *Exchange) startTrace(ctx context.Context, r *http.Request) (*http.Request, trace.Span) {
	if len(r.Header[traceParent]) > 0 {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	span := trace.SpanFromContext(ctx)
	if r.Pattern != "" && (span.SpanContext().IsValid() || !x.route.Routine) {
		ctx, span = x.router.Tracer.Start(ctx, r.Pattern, r.Header.Get(wire.HeaderTraceDecided) != "", x.started)
	}
	ids := tracing.AppendLogAttrs([]slog.Attr{slog.String("request_id", r.Header.Get(wire.HeaderRequestID))}, span)
	return r.WithContext(telemetry.InRequest(ctx, ids...)), span
}

// endTrace ends the span of a request. aborted means that the response is incomplete.
func endTrace(span trace.Span, r *http.Request, status int, aborted bool) {
	if !span.IsRecording() {
		return
	}
	about := tracing.Request{
		Method: r.Method, Scheme: "http", Status: status, ID: r.Header.Get(wire.HeaderRequestID),
		// The console has replaced the pattern by its page's.
		Route: r.Pattern[strings.Index(r.Pattern, " ")+1:],
	}
	if about.KeyID = r.Header.Get(wire.HeaderKeyID); about.KeyID != "" {
		about.Environment = r.Header.Get(wire.HeaderKeyEnv)
	}
	switch failed := status >= http.StatusInternalServerError; {
	case r.Context().Err() != nil && (aborted || failed):
		about.Failure = "gone"
	case aborted:
		about.Failure = "cut"
	case failed:
		about.Failure = strconv.Itoa(status)
	}
	tracing.SetRequest(span, about)
	span.End()
}
