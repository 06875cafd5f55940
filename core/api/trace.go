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

// startTrace begins the span of a request below the gateway's, and has every line of its log bear the ids by which a request
// is found. What gateways ask by themselves begins no trace.
func (s *Server) startTrace(r *http.Request, at time.Time) (*http.Request, tracing.Span) {
	parents := r.Header[tracing.HeaderTraceparent]
	var span tracing.Span
	byGateway := r.Pattern != "" // whoever is refused before that may say what he likes
	if byGateway && (len(parents) > 0 || !slices.Contains(routine, r.Pattern)) {
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

// endTrace ends it with what has become known of the request. cut says that the answer broke off.
func endTrace(span tracing.Span, r *http.Request, status int, cut bool) {
	if !span.Recording() {
		return
	}
	// The pattern is the page's by now, where the console was asked.
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
	case r.Context().Err() != nil && (cut || status >= http.StatusInternalServerError):
		span.Fail("gone")
	case cut:
		span.Fail("cut")
	case status >= http.StatusInternalServerError:
		span.FailStatus(status)
	}
	span.End()
}

// otherMethod is what a method is called that no route has.
const otherMethod = "_OTHER"

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return otherMethod
	}
}

// spanMethod begins a span's name.
func spanMethod(method string) string {
	if method == otherMethod {
		return "HTTP"
	}
	return method
}
