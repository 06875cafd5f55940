package access

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/tracing"
)

// TraceRedis is a hook that shows calls to Redis in the traces of the requests that make them: the command, never its
// arguments.
func TraceRedis() redis.Hook { return redisTracer{} }

type redisTracer struct{}

// DialHook implements redis.Hook: a connection belongs to no request.
func (redisTracer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

// ProcessHook implements redis.Hook.
func (redisTracer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		span := startCommand(ctx, strings.ToUpper(command.Name()))
		err := next(ctx, command)
		endCommand(span, err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (redisTracer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		span := startCommand(ctx, "PIPELINE")
		span.SetBatchSize(len(commands))
		err := next(ctx, commands)
		endCommand(span, err)
		return err
	}
}

func startCommand(ctx context.Context, name string) tracing.Span {
	request := tracing.FromContext(ctx)
	if !request.Recording() {
		return request
	}
	span := request.Start(name, tracing.Client, tracing.Database("redis", "")...)
	span.Set(tracing.Query(name, "")...)
	return span
}

func endCommand(span tracing.Span, err error) {
	if !span.Recording() {
		return
	}
	switch {
	case err == nil, errors.Is(err, redis.Nil):
	case redis.HasErrorPrefix(err, "NOSCRIPT"): // the script is sent whole next
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		span.Fail("timeout")
	default:
		span.Fail("redis")
	}
	span.End()
}
