package control

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// startSpan begins the span of one attempt, where the request is part of a traced one, and sets the trace headers.
func startSpan(ctx context.Context, core *cores.Core, r request, header http.Header) tracing.Span {
	parent := tracing.FromContext(ctx)
	if !parent.IsValid() {
		return parent
	}
	path, _, _ := strings.Cut(r.target, "?")
	span := parent.Start(r.method+" "+path, tracing.Client, tracing.RequestMethod(r.method), tracing.URLTemplate(path))
	span.SetServer(core.Address)
	header.Set(tracing.HeaderTraceparent, string(span.AppendTraceparent(nil)))
	if state := span.Tracestate(); state != "" {
		header.Set(tracing.HeaderTracestate, state)
	}
	header.Set(wire.HeaderTraceDecided, "1")
	return span
}

// endSpan ends the span with the response's status or the error.
func endSpan(span tracing.Span, status int, err error) {
	if !span.Recording() {
		return
	}
	switch {
	case err == nil:
		span.Answered(status)
	case isDialError(err):
		span.Fail("unreachable")
	case errors.Is(err, context.DeadlineExceeded):
		span.Fail("timeout")
	default:
		span.Fail("broken")
	}
	span.End()
}
