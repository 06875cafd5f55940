package main

import (
	"context"
	"log/slog"
	"time"

	"intents.internal/core/postgres"
)

const (
	// expiryLagEvery is how old the expiry lag may become.
	expiryLagEvery = 15 * time.Second
	// expiryLagTimeout keeps a reading from waiting for a connection that requests need.
	expiryLagTimeout = 2 * time.Second
)

// readExpiryLag keeps the metric of overdue intents fresh. It logs when that begins to fail and when it works again.
func readExpiryLag(ctx context.Context, store *postgres.Store, log *slog.Logger) {
	ticker := time.NewTicker(expiryLagEvery)
	defer ticker.Stop()
	failing := false
	for {
		limited, cancel := context.WithTimeout(ctx, expiryLagTimeout)
		err := store.ReadExpiryLag(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("the expiry lag cannot be read, trying again every 15 seconds", "error", err)
		case err == nil && failing:
			log.Info("the expiry lag can be read again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
