package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Noop is a span that is not recorded. Its methods do nothing.
var Noop = trace.SpanFromContext(context.Background())

// ResponseStarted is the event that the header of a streamed response has arrived.
const ResponseStarted = "answer begins"

// StartClient starts the span of a call to another process, a child of parent. If parent does not record, it returns parent, which
// propagates the trace.
func StartClient(parent trace.Span, name string, attributes ...attribute.KeyValue) trace.Span {
	if !parent.IsRecording() {
		return parent
	}
	_, span := parent.TracerProvider().Tracer(scope).Start(trace.ContextWithSpan(context.Background(), parent), name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return span
}

// Fail marks a span as failed. reason is from a closed set, an HTTP status or an SQLSTATE, never a message.
func Fail(span trace.Span, reason string) {
	if span.IsRecording() {
		span.SetAttributes(semconv.ErrorTypeKey.String(reason))
		span.SetStatus(codes.Error, "")
	}
}

// End ends a span. An error marks it as failed, with the reason timeout or cancellation if it is one, else with the given reason.
func End(span trace.Span, err error, reason string) {
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		Fail(span, "timeout")
	case errors.Is(err, context.Canceled):
		Fail(span, "canceled")
	default:
		Fail(span, reason)
	}
	span.End()
}

// StartRequest starts the span of a request to another service. template is its path without ids.
func StartRequest(parent trace.Span, method, template string) trace.Span {
	if !parent.IsRecording() {
		return parent
	}
	return StartClient(parent, method+" "+template, semconv.HTTPRequestMethodKey.String(method), semconv.URLTemplate(template))
}

// SetAddress sets the host:port that a request is sent to.
func SetAddress(span trace.Span, address string) {
	if host, port, err := net.SplitHostPort(address); err == nil {
		number, _ := strconv.Atoi(port)
		span.SetAttributes(semconv.ServerAddress(host), semconv.ServerPort(number))
	}
}

// SetResponse sets the status of the response. By the conventions a status of 400 or more fails a client span.
func SetResponse(span trace.Span, status int) {
	if span.IsRecording() {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= 400 {
			Fail(span, strconv.Itoa(status))
		}
	}
}

// Request has the attributes of a received request's span. No field is a path, query, body, client address or key.
type Request struct {
	Method, Scheme, ID, KeyID, Environment string
	// Route is the template of the path; may be empty.
	Route  string
	Status int
	// Outcome is the metrics' outcome label, Failure a reason for Fail; may be empty.
	Outcome, Failure string
}

// SetRequest names the span of a received request and sets its attributes.
func SetRequest(span trace.Span, r Request) {
	name := r.Method
	switch r.Method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
	default:
		r.Method, name = "_OTHER", "HTTP"
	}
	if r.Route != "" {
		name += " " + r.Route
	}
	span.SetName(name)
	span.SetAttributes(semconv.HTTPResponseStatusCode(r.Status))
	for _, a := range []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(r.Method), semconv.URLScheme(r.Scheme), semconv.HTTPRoute(r.Route),
		attribute.String("intents.request_id", r.ID), attribute.String("intents.key_id", r.KeyID),
		attribute.String("intents.environment", r.Environment), attribute.String("intents.outcome", r.Outcome),
	} {
		if a.Value.AsString() != "" {
			span.SetAttributes(a)
		}
	}
	if r.Failure != "" {
		Fail(span, r.Failure)
	}
}

// AppendLogAttrs adds the ids of the span to the attributes of a request's log line. For a client's remote span, which is the
// current one while tracing is off, it adds the trace id only.
func AppendLogAttrs(attributes []slog.Attr, span trace.Span) []slog.Attr {
	c := span.SpanContext()
	if c.HasTraceID() {
		attributes = append(attributes, slog.String("trace_id", c.TraceID().String()))
	}
	if c.HasSpanID() && !c.IsRemote() {
		attributes = append(attributes, slog.String("span_id", c.SpanID().String()))
	}
	return attributes
}
