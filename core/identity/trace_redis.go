package identity

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tracing"
)

// TraceRedis is a hook that records calls to Redis in the traces of the requests: the command, never its arguments.
func TraceRedis() redis.Hook { return redisTracer{} }

type redisTracer struct{}

// DialHook implements redis.Hook: a connection belongs to no request.
func (redisTracer) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (redisTracer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		return traceCommand(ctx, command.Name(), 1, func() error { return next(ctx, command) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (redisTracer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		return traceCommand(ctx, "pipeline", len(commands), func() error { return next(ctx, commands) })
	}
}

func traceCommand(ctx context.Context, name string, size int, call func() error) error {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return call()
	}
	name = strings.ToUpper(name)
	span := tracing.StartClient(request, name, semconv.DBSystemNameRedis, semconv.DBOperationName(name))
	if size > 1 { // by the conventions a single operation is not a batch
		span.SetAttributes(semconv.DBOperationBatchSize(size))
	}
	err := call()
	failure := err
	if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOSCRIPT") { // the script is sent whole next
		failure = nil
	}
	tracing.End(span, failure, "redis")
	return err
}
