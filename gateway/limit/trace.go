package limit

import (
	"context"
	"errors"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"intents.internal/pkg/tracing"
)

// startCall begins the span of a call to Redis, which the requests of a batch share.
func startCall(name string, batch []*request) tracing.Span {
	call := tracing.StartShared(len(batch), func(n int) tracing.Span { return batch[n].span }, name, tracing.Client)
	if !call.Recording() {
		return call
	}
	call.Set(tracing.Database("redis", "")...)
	call.Set(tracing.Query(name, "")...)
	for _, r := range batch {
		r.shared = call
	}
	return call
}

func endCall(call tracing.Span, err error) {
	if !call.Recording() {
		return
	}
	if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") { // the script is sent whole next
		call.Fail(failureOf(err))
	}
	call.End()
}

// endAsking ends the span of a request's own wait. Without an answer the fallback decides.
func endAsking(asking tracing.Span, err error) {
	if err != nil {
		asking.Fail(failureOf(err))
	}
	asking.End()
}

func failureOf(err error) string {
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return "breaker_open"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	default:
		return "redis"
	}
}
