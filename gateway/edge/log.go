package edge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"intents.internal/pkg/tracing"
)

// logAccess writes the request's log line. It logs the route, and never the path, query, key or body.
func (e *Edge) logAccess(x *exchange, elapsed time.Duration) {
	if e.accessLog == nil {
		return
	}
	attributes := make([]slog.Attr, 0, 9)
	attributes = append(attributes,
		slog.String("request_id", string(x.id)),
		slog.String("route", x.route.pattern),
		slog.String("method", methodName(x.method())),
		slog.Int("status", x.ctx.Response.StatusCode()),
		slog.String("outcome", x.outcome.String()),
		slog.Float64("duration_ms", milliseconds(elapsed)))
	if x.verdict != nil {
		attributes = append(attributes, slog.String("key_id", x.verdict.KeyID()))
	}
	if x.token != nil {
		attributes = append(attributes, slog.Bool("client_token", true))
	}
	if x.upstreamTime > 0 {
		attributes = append(attributes, slog.Float64("upstream_ms", milliseconds(x.upstreamTime)))
	}
	if x.parked > 0 {
		attributes = append(attributes, slog.Float64("parked_ms", milliseconds(x.parked)))
	}
	attributes = tracing.AppendLogAttrs(attributes, x.span)
	e.accessLog.LogAttrs(context.Background(), slog.LevelInfo, "request", attributes...)
}

// otherMethod is the label of methods that no HTTP specification defines.
const otherMethod = "other"

// methodName returns otherMethod for an unknown method, so that clients cannot write to the log.
func methodName(method []byte) string {
	for _, known := range methods {
		if string(method) == known {
			return known
		}
	}
	return otherMethod
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (e *Edge) logPanic(x *exchange, cause any) {
	attributes := tracing.AppendLogAttrs([]slog.Attr{
		slog.String("request_id", string(x.id)), slog.String("error", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())),
	}, x.span)
	e.log.LogAttrs(context.Background(), slog.LevelError, "request handler panicked", attributes...)
}
