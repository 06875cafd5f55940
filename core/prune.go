package main

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"intents.internal/core/postgres"
)

// pruneEvery is how often what has expired is removed.
const pruneEvery = time.Hour

// prune removes what has expired or is older than its retention, once an hour.
func prune(ctx context.Context, store *postgres.Store, keep postgres.Retention, log *slog.Logger) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		removed, err := store.Prune(ctx, store.Now(), keep)
		maps.DeleteFunc(removed, func(_ string, rows int64) bool { return rows == 0 })
		switch {
		case err != nil && ctx.Err() == nil:
			log.Warn("pruning failed, trying again in an hour", "error", err, "rows_removed", removed)
		case len(removed) > 0:
			log.Info("pruned", "rows_removed", removed)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
