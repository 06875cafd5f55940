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

// Noop is the span of no trace. Its methods do nothing.
var Noop = trace.SpanFromContext(context.Background())

// ResponseStarted is the event that the head of a response has come whose body is streamed.
const ResponseStarted = "answer begins"

// Start starts a span below parent. Below one that does not record it returns parent, which passes the trace on.
func Start(parent trace.Span, name string, options ...trace.SpanStartOption) trace.Span {
	if !parent.IsRecording() {
		return parent
	}
	_, span := parent.TracerProvider().Tracer(scope).Start(trace.ContextWithSpan(context.Background(), parent), name, options...)
	return span
}

// StartClient is Start for a call to another process.
func StartClient(parent trace.Span, name string, attributes ...attribute.KeyValue) trace.Span {
	if !parent.IsRecording() {
		return parent
	}
	return Start(parent, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

// StartShared starts the span of one call for a whole batch: below the first of its spans that records, and linked with the
// others, which should link to it. Where none records it returns Noop.
func StartShared[T any](batch []T, spanOf func(T) trace.Span, name string) trace.Span {
	var first trace.Span
	var links []trace.Link
	for _, part := range batch {
		switch span := spanOf(part); {
		case !span.IsRecording():
		case first == nil:
			first = span
		default:
			links = append(links, trace.Link{SpanContext: span.SpanContext()})
		}
	}
	if first == nil {
		return Noop
	}
	shared := Start(first, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...))
	if len(batch) > 1 { // one operation is no batch by the conventions
		shared.SetAttributes(semconv.DBOperationBatchSize(len(batch)))
	}
	return shared
}

// Link links a span to a sampled one that it has a part in, nil for none.
func Link(span, to trace.Span) {
	if span.IsRecording() && to != nil && to.SpanContext().IsSampled() {
		span.AddLink(trace.Link{SpanContext: to.SpanContext()})
	}
}

// Fail marks a span as failed. reason is a word of a closed set, an HTTP status or an SQLSTATE, never a message.
func Fail(span trace.Span, reason string) {
	if span.IsRecording() {
		span.SetAttributes(semconv.ErrorTypeKey.String(reason))
		span.SetStatus(codes.Error, "")
	}
}

// End ends a span. With an error it is failed: by a timeout, a cancellation, or for this reason.
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

// StartRequest starts the span of a request to another service at host:port. template is its path without ids.
func StartRequest(parent trace.Span, method, template, address string) trace.Span {
	if !parent.IsRecording() {
		return parent
	}
	span := StartClient(parent, method+" "+template, semconv.HTTPRequestMethodKey.String(method), semconv.URLTemplate(template))
	if host, port, err := net.SplitHostPort(address); err == nil {
		number, _ := strconv.Atoi(port)
		span.SetAttributes(semconv.ServerAddress(host), semconv.ServerPort(number))
	}
	return span
}

// SetResponse adds the status of the response. By the conventions 400 and more are failures of the client's span.
func SetResponse(span trace.Span, status int) {
	if span.IsRecording() {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= 400 {
			Fail(span, strconv.Itoa(status))
		}
	}
}

// Request is what the span of a received request tells. No field is a path, query, body, address of a client or key.
type Request struct {
	Method, Scheme, ID, KeyID, Environment string
	// Route is the template of the path, empty for none.
	Route  string
	Status int
	// Outcome is the word of the metrics, Failure a reason as Fail has it; empty for none.
	Outcome, Failure string
}

// SetRequest names the span of a received request, and adds what has become known of it.
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

// AppendLogAttrs adds the ids of the span to those of a request's log line. Of a remote span, which a client sent while
// tracing is off, it adds the trace's alone.
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
