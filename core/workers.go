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
	// countEvery is the age that the status counts may reach. A count costs the database a few milliseconds.
	countEvery = 15 * time.Second
	// countTimeout keeps a count from waiting for a connection that requests need.
	countTimeout = 2 * time.Second
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

// countStatuses updates the metrics of the intents by status.
func countStatuses(ctx context.Context, store *postgres.Store, log *slog.Logger) {
	repeat(ctx, log, slog.LevelWarn, "count transfers by status", countEvery, func() (more bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		return false, store.Census(ctx)
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
