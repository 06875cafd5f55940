package tracing

import (
	"context"
	"encoding/hex"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Attribute is what a span tells of its operation; attributes.go has those there are.
type Attribute = attribute.KeyValue

// The kinds of spans: work of this process, a request that it answers, a request that it makes.
const (
	Internal = trace.SpanKindInternal
	Server   = trace.SpanKindServer
	Client   = trace.SpanKindClient
)

// Span is an operation of a trace. The zero Span is of no trace, and all its methods do nothing. A Span may be copied;
// the copies are of one operation. It is safe for concurrent use.
type Span struct {
	// ctx bears the span, for what begins below it.
	ctx  context.Context
	span trace.Span
}

// FromContext is the span that ctx bears, the zero Span if none.
func FromContext(ctx context.Context) Span {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsValid() {
		return Span{}
	}
	return Span{ctx: ctx, span: span}
}

// In is ctx with the span on it.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Recording reports whether anything of the span is kept. What is costly to tell need not be told where it is false.
func (s Span) Recording() bool { return s.span != nil && s.span.IsRecording() }

// IsValid reports whether the span is of a trace, whether or not that is sampled.
func (s Span) IsValid() bool { return s.span != nil }

// TraceID and SpanID are the ids as they are written, 32 and 16 hexadecimal digits; empty for the zero Span.
func (s Span) TraceID() string {
	if s.span == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// SpanID is described with TraceID.
func (s Span) SpanID() string {
	if s.span == nil {
		return ""
	}
	return s.span.SpanContext().SpanID().String()
}

// Start begins an operation below this one, which must be ended. Below a span that is not recording nothing begins, and
// what is returned passes the trace on.
func (s Span) Start(name string, kind trace.SpanKind, attributes ...Attribute) Span {
	if !s.Recording() {
		return s
	}
	ctx, span := s.span.TracerProvider().Tracer(scope).Start(s.ctx, name,
		trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return Span{ctx: ctx, span: span}
}

// StartShared begins an operation that several wait for, whose spans are at(0) to at(n-1): below the first of them that is
// recording, and linked with the others, which should link to it. The zero Span is what begins where none is.
func StartShared(n int, at func(int) Span, name string, kind trace.SpanKind) Span {
	var first Span
	var links []trace.Link
	for i := range n {
		switch s := at(i); {
		case !s.Recording():
		case !first.IsValid():
			first = s
		default:
			links = append(links, trace.Link{SpanContext: s.span.SpanContext()})
		}
	}
	if !first.IsValid() {
		return first
	}
	ctx, span := first.span.TracerProvider().Tracer(scope).Start(first.ctx, name, trace.WithSpanKind(kind), trace.WithLinks(links...))
	shared := Span{ctx: ctx, span: span}
	shared.SetBatchSize(n)
	return shared
}

// Link says that this operation has its part in another, which may be of another trace.
func (s Span) Link(to Span) {
	if s.Recording() && to.span != nil {
		s.span.AddLink(trace.Link{SpanContext: to.span.SpanContext()})
	}
}

// Name names the operation anew.
func (s Span) Name(name string) {
	if s.Recording() {
		s.span.SetName(name)
	}
}

// Set tells more of the operation.
func (s Span) Set(attributes ...Attribute) {
	if s.Recording() {
		s.span.SetAttributes(attributes...)
	}
}

// SetServer tells which server, host:port, a request of this process went to.
func (s Span) SetServer(address string) {
	if s.Recording() {
		s.span.SetAttributes(ServerAt(address)...)
	}
}

// SetBatchSize tells how many operations one call carries out; by the conventions one alone is no batch.
func (s Span) SetBatchSize(n int) {
	if n > 1 && s.Recording() {
		s.span.SetAttributes(semconv.DBOperationBatchSize(n))
	}
}

// AnswerBegins is the event that the head of an answer has come whose body is passed on as it comes.
const AnswerBegins = "answer begins"

// Event says that something happened in the operation just now. name is one of a closed set.
func (s Span) Event(name string) {
	if s.Recording() {
		s.span.AddEvent(name)
	}
}

// Fail says that the operation failed. kind is a word of a closed set, never a message.
func (s Span) Fail(kind string) {
	if s.Recording() {
		s.span.SetAttributes(ErrorType(kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// Answered says what a request that this process made was answered with; by the conventions a status of 400 and more is a
// failure on this side.
func (s Span) Answered(status int) {
	if !s.Recording() {
		return
	}
	s.span.SetAttributes(ResponseStatus(status))
	if status >= 400 {
		s.FailStatus(status)
	}
}

// FailStatus is Fail with an HTTP status for the reason.
func (s Span) FailStatus(status int) {
	if s.Recording() {
		s.Fail(strconv.Itoa(status))
	}
}

// End ends the operation. What is told later is lost.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// AppendTraceparent writes the span as the header traceparent of W3C Trace Context; nothing for the zero Span.
func (s Span) AppendTraceparent(b []byte) []byte {
	if s.span == nil {
		return b
	}
	c := s.span.SpanContext()
	traceID, spanID, flags := c.TraceID(), c.SpanID(), c.TraceFlags()&knownFlags
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, traceID[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, spanID[:])
	b = append(b, '-')
	return hex.AppendEncode(b, []byte{byte(flags)})
}

// Tracestate is what other systems have written into the trace, as the header of that name; empty for nothing.
func (s Span) Tracestate() string {
	if s.span == nil {
		return ""
	}
	return s.span.SpanContext().TraceState().String()
}
