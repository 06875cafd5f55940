package main

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"intents.internal/core/postgres"
)

const (
	// expireEvery is the interval between two checks of the intents' deadlines.
	expireEvery = time.Second
	// lagEvery is the age that the expiry lag may reach, and lagTimeout keeps its query from waiting for a connection that requests
	// need.
	lagEvery, lagTimeout = 15 * time.Second, 2 * time.Second
	// pruneEvery is the interval between two removals of expired rows.
	pruneEvery = time.Hour
)

// expire marks the intents whose deadline has passed.
func expire(ctx context.Context, store *postgres.Store, log *slog.Logger) {
	repeat(ctx, log, slog.LevelError, "expire transfers", expireEvery, func() (more bool, err error) {
		expired, err := store.ExpireTransfers(ctx)
		return expired > 0, err
	})
}

// readExpiryLag updates the metric of how late intents expire.
func readExpiryLag(ctx context.Context, store *postgres.Store, log *slog.Logger) {
	repeat(ctx, log, slog.LevelWarn, "read the expiry lag", lagEvery, func() (more bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, lagTimeout)
		defer cancel()
		return false, store.ReadExpiryLag(ctx)
	})
}

// prune removes the rows that have expired or are older than their retention.
func prune(ctx context.Context, store *postgres.Store, retention postgres.Retention, log *slog.Logger) {
	repeat(ctx, log, slog.LevelWarn, "prune", pruneEvery, func() (more bool, err error) {
		removed, err := store.Prune(ctx, store.Now(), retention)
		maps.DeleteFunc(removed, func(_ string, rows int64) bool { return rows == 0 })
		if len(removed) > 0 {
			log.Info("pruned", "rows_removed", removed)
		}
		return false, err
	})
}

// repeat runs a job at once and then at each interval until ctx ends, without a pause while there is more to do. It logs the first of
// several failures and the success after them.
func repeat(ctx context.Context, log *slog.Logger, level slog.Level, name string, every time.Duration, job func() (more bool, err error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	failing := false
	for {
		more, err := job()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.LogAttrs(ctx, level, "background job fails", slog.String("job", name), slog.String("retry_every", every.String()), slog.Any("error", err))
		case err == nil && failing:
			log.LogAttrs(ctx, slog.LevelInfo, "background job succeeds again", slog.String("job", name))
		}
		failing = err != nil
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
