package limit

import (
	"context"
	"errors"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"intents.internal/pkg/tracing"
)

// startBatchSpan begins the span of a call to Redis, below one item of the batch and linked with the others.
func startBatchSpan[T any](name string, batch []*pending[T]) tracing.Span {
	span := tracing.StartShared(len(batch), func(n int) tracing.Span { return batch[n].span }, name, tracing.Client)
	if !span.Recording() {
		return span
	}
	span.Set(tracing.Database("redis", "")...)
	span.Set(tracing.Query(name, "")...)
	for _, p := range batch {
		p.batchSpan = span
	}
	return span
}

func endBatchSpan(span tracing.Span, err error) {
	if !span.Recording() {
		return
	}
	if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") { // go-redis sends the script's text next
		span.Fail(failureOf(err))
	}
	span.End()
}

func failureOf(err error) string {
	switch {
	case isBreakerOpen(err):
		return "breaker_open"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	default:
		return "redis"
	}
}

// isBreakerOpen reports whether the breaker kept a call from Redis.
func isBreakerOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}
