package api

import (
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startTrace starts the span of a request below the gateway's, and adds the ids by which a request is found to every line of
// its log. What gateways ask by themselves starts no trace, nor does a request that is refused before its route is known:
// anyone may have sent its headers.
func (s *Server) startTrace(r *http.Request, at time.Time) (*http.Request, trace.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	span := trace.SpanFromContext(ctx)
	if r.Pattern != "" && (span.SpanContext().IsValid() || !slices.Contains(routine, r.Pattern)) {
		ctx, span = s.Tracer.Start(ctx, r.Pattern, r.Header.Get(wire.HeaderTraceDecided) != "", at)
	}
	ids := tracing.AppendLogAttrs([]slog.Attr{slog.String("request_id", r.Header.Get(wire.HeaderRequestID))}, span)
	return r.WithContext(telemetry.InRequest(ctx, ids...)), span
}

// endTrace ends the span with what has become known of the request. cut says that the answer broke off.
func endTrace(span trace.Span, r *http.Request, status int, cut bool) {
	if !span.IsRecording() {
		return
	}
	about := tracing.Request{
		Method: r.Method, Scheme: "http", Status: status, ID: r.Header.Get(wire.HeaderRequestID),
		// The pattern is the page's by now, where the console was asked.
		Route: r.Pattern[strings.Index(r.Pattern, " ")+1:],
	}
	if about.KeyID = r.Header.Get(wire.HeaderKeyID); about.KeyID != "" {
		about.Environment = r.Header.Get(wire.HeaderKeyEnv)
	}
	switch failed := status >= http.StatusInternalServerError; {
	case r.Context().Err() != nil && (cut || failed):
		about.Failure = "gone"
	case cut:
		about.Failure = "cut"
	case failed:
		about.Failure = strconv.Itoa(status)
	}
	tracing.SetRequest(span, about)
	span.End()
}
