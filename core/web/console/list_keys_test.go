package console_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// roundTrips counts what is sent to Redis, a pipeline once.
type roundTrips struct{ atomic.Int64 }

func (*roundTrips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		r.Add(1)
		return next(ctx, command)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		r.Add(1)
		return next(ctx, commands)
	}
}

// The limits of a hundred keys take one round trip to Redis.
func TestListKeys_OneRedisCall(t *testing.T) {
	t.Parallel()
	counted := &roundTrips{}
	s, _ := startOnRedis(t, counted)
	ann := s.signedUp(t, "ann@example.com")
	pgtest.Exec(t, s.store, `INSERT INTO api_keys (id, account_id, name, hash, start, environment, enabled, limit_requests, limit_period_seconds, limit_bucket, scopes, networks, created_at, updated_at)
		SELECT gen_random_uuid(), accounts.id, 'key ' || n, sha256(n::text::bytea), 'sk_test_0000', 'test', true, 50, 60, gen_random_uuid(), '{webhooks}', '{}', now(), now()
		FROM accounts, generate_series(1, $1::int) n`, account.MaxKeys)
	ann.get("/console/keys").is(http.StatusOK, fmt.Sprintf("%d of %d, test and live.", account.MaxKeys, account.MaxKeys), "50 of 50")
	if n := counted.Load(); n != 1 {
		t.Errorf("%d round trips for %d keys, want one", n, account.MaxKeys)
	}
}
