package topology

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// CheckEviction returns an error for a Redis whose maxmemory-policy may evict what has no TTL, as buckets have none: each eviction gives
// every key its whole limit again. A Redis that does not answer, or does not say its policy, is no error.
func CheckEviction(ctx context.Context, client redis.UniversalClient) error {
	_, err := eviction(ctx, client)
	return err
}

// eviction reports whether a server has said its policy, and what CheckEviction returns.
func eviction(ctx context.Context, client redis.UniversalClient) (known bool, err error) {
	for _, server := range servers(ctx, client, "memory") {
		policy, said := server.fields["maxmemory_policy"]
		known = known || said
		if strings.HasPrefix(policy, "allkeys-") {
			err = fmt.Errorf("maxmemory-policy is %s, so that Redis may evict the buckets of limits, and keys get more than their limit: set noeviction", policy)
		}
	}
	return known, err
}

// WarnOfEviction logs what CheckEviction returns as soon as Redis has said its policy. It returns then, or when ctx ends.
func WarnOfEviction(ctx context.Context, client redis.UniversalClient, log *slog.Logger) {
	const askEvery = 10 * time.Second
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		known, err := eviction(ctx, client)
		if err != nil {
			log.Warn("redis may evict limits", "error", err)
		}
		if known {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
