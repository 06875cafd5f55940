package limit

import (
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tracing"
)

// startCall starts the span of a call to Redis, which the requests of a batch share.
func startCall(name string, batch []*request) trace.Span {
	call := tracing.StartShared(batch, func(r *request) trace.Span { return r.span }, name)
	if call.IsRecording() {
		call.SetAttributes(semconv.DBSystemNameRedis, semconv.DBOperationName(name))
		for _, r := range batch {
			r.shared = call
		}
	}
	return call
}

// endCall ends the span of a call. After NOSCRIPT the script is sent whole.
func endCall(call trace.Span, err error) {
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = nil
	}
	tracing.End(call, err, errorType(err))
}

// errorType is why Redis has not answered, but for a timeout.
func errorType(err error) string {
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return "breaker_open"
	}
	return "redis"
}
