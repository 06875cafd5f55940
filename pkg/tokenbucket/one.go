package tokenbucket

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/topology"
)

// Buckets of one key each are stored as redis_rate stores them. Such a bucket has no account, and a node of a Cluster to itself.
var (
	//go:embed take_key.lua
	takeKeySource string
	//go:embed refund_key.lua
	refundKeySource string

	takeKeyScript   = redis.NewScript(gcraSource + takeKeySource)
	refundKeyScript = redis.NewScript(gcraSource + refundKeySource)
)

// OneKey returns the key in Redis of the bucket of TakeOne with this name.
func OneKey(name string) string { return Prefix + name }

// TakeOne takes one token from a bucket in a key of its own, or returns the time until it has one.
func TakeOne(ctx context.Context, client redis.UniversalClient, bucket Bucket) (wait time.Duration, err error) {
	micros, err := runOne(ctx, client, takeKeyScript, bucket).Int64Slice()
	if err != nil {
		return 0, err
	}
	return longestWait(micros, bucket.Rule), nil
}

// RefundOne returns one token to a bucket in a key of its own.
func RefundOne(ctx context.Context, client redis.UniversalClient, bucket Bucket) error {
	return runOne(ctx, client, refundKeyScript, bucket).Err()
}

// ResetOne fills a bucket in a key of its own.
func ResetOne(ctx context.Context, client redis.UniversalClient, name string) error {
	return client.Del(ctx, OneKey(name)).Err()
}

func runOne(ctx context.Context, client redis.UniversalClient, script *redis.Script, bucket Bucket) *redis.Cmd {
	var call Call
	call.Begin(bucket.Rule, Rule{}, 1)
	call.Add(Field(bucket.Name), nil)
	return script.Run(ctx, topology.AtMostOnce{UniversalClient: client}, []string{OneKey(bucket.Name)}, call.args[firstRule:]...)
}
