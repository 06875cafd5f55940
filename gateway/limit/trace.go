package limit

import (
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tracing"
)

// startBatchSpan starts the span of a call to Redis, as a child of one item of the batch and linked to the others.
func startBatchSpan[T any](name string, batch []*pending[T]) trace.Span {
	span := tracing.StartShared(batch, func(p *pending[T]) trace.Span { return p.span }, name)
	if span.IsRecording() {
		span.SetAttributes(semconv.DBSystemNameRedis, semconv.DBOperationName(name))
		for _, p := range batch {
			p.batchSpan = span
		}
	}
	return span
}

// endBatchSpan ends the span of a call. After NOSCRIPT go-redis sends the script's text.
func endBatchSpan(span trace.Span, err error) {
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = nil
	}
	tracing.End(span, err, errorType(err))
}

// errorType returns why Redis has not responded, except for timeouts.
func errorType(err error) string {
	if isBreakerOpen(err) {
		return "breaker_open"
	}
	return "redis"
}

// isBreakerOpen reports whether the breaker blocked a call to Redis.
func isBreakerOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}
