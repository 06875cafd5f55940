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

// startQuestion begins the span of one attempt at one core, where the question is part of a traced request, and has the
// request's headers tell core of it.
func startQuestion(ctx context.Context, core *cores.Core, q question, header http.Header) tracing.Span {
	asked := tracing.FromContext(ctx)
	if !asked.IsValid() {
		return asked
	}
	path, _, _ := strings.Cut(q.target, "?")
	span := asked.Start(q.method+" "+path, tracing.Client, tracing.RequestMethod(q.method), tracing.URLTemplate(path))
	span.SetServer(core.Address)
	header.Set(tracing.HeaderTraceparent, string(span.AppendTraceparent(nil)))
	if state := span.Tracestate(); state != "" {
		header.Set(tracing.HeaderTracestate, state)
	}
	header.Set(wire.HeaderTraceDecided, "1")
	return span
}

// endQuestion ends it with the answer's status, or why there was none.
func endQuestion(span tracing.Span, status int, err error) {
	if !span.Recording() {
		return
	}
	switch {
	case err == nil:
		span.Answered(status)
	case isUnreached(err):
		span.Fail("unreachable")
	case errors.Is(err, context.DeadlineExceeded):
		span.Fail("timeout")
	default:
		span.Fail("broken")
	}
	span.End()
}
