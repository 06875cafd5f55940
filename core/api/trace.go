package api

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startTrace starts the span of a request below the gateway's, and adds the request and trace ids to its log lines. The routine
// requests of gateways start no trace.
func (s *Server) startTrace(r *http.Request, at time.Time) (*http.Request, tracing.Span) {
	parents := r.Header[tracing.HeaderTraceparent]
	var span tracing.Span
	authenticated := r.Pattern != "" // the headers of other requests are not trusted
	if authenticated && (len(parents) > 0 || !slices.Contains(routine, r.Pattern)) {
		parent := tracing.ReadParent(parents, r.Header[tracing.HeaderTracestate])
		span = s.Tracer.Serve(r.Pattern, parent, r.Header.Get(wire.HeaderTraceDecided) != "", at)
	}
	ids := []slog.Attr{slog.String("request_id", r.Header.Get(wire.HeaderRequestID))}
	if span.IsValid() {
		ids = append(ids, slog.String("trace_id", span.TraceID()), slog.String("span_id", span.SpanID()))
	} else if id := tracing.TraceIDOf(parents); id != "" {
		ids = append(ids, slog.String("trace_id", id))
	}
	return r.WithContext(span.In(telemetry.InRequest(r.Context(), ids...))), span
}

// endTrace ends the span of a request. aborted means that the response is incomplete.
func endTrace(span tracing.Span, r *http.Request, status int, aborted bool) {
	if !span.Recording() {
		return
	}
	// The console has replaced the pattern with its page's.
	_, route, hasMethod := strings.Cut(r.Pattern, " ")
	if !hasMethod {
		route = r.Pattern
	}
	method := knownMethod(r.Method)
	span.Name(strings.TrimSpace(spanMethod(method) + " " + route))
	span.Set(tracing.RequestMethod(method), tracing.URLScheme("http"), tracing.ResponseStatus(status))
	if id := r.Header.Get(wire.HeaderRequestID); id != "" {
		span.Set(tracing.RequestID(id))
	}
	if route != "" {
		span.Set(tracing.Route(route))
	}
	if id := r.Header.Get(wire.HeaderKeyID); id != "" {
		span.Set(tracing.KeyID(id), tracing.Environment(r.Header.Get(wire.HeaderKeyEnv)))
	}
	switch {
	case r.Context().Err() != nil && (aborted || status >= http.StatusInternalServerError):
		span.Fail("gone")
	case aborted:
		span.Fail("cut")
	case status >= http.StatusInternalServerError:
		span.FailStatus(status)
	}
	span.End()
}

// otherMethod stands for a method that no route has.
const otherMethod = "_OTHER"

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return otherMethod
	}
}

// spanMethod is the method in a span's name.
func spanMethod(method string) string {
	if method == otherMethod {
		return "HTTP"
	}
	return method
}
