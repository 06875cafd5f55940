package main

import (
	"context"
	"log/slog"
	"time"

	"intents.internal/core/postgres"
)

const (
	// censusEvery is how old the number of intents by status may become, which costs the database a few milliseconds.
	censusEvery = 15 * time.Second
	// censusTimeout keeps a census from waiting for a connection that requests need.
	censusTimeout = 2 * time.Second
)

// census keeps the metrics of the intents fresh. It logs when that begins to fail and when it works again.
func census(ctx context.Context, store *postgres.Store, log *slog.Logger) {
	ticker := time.NewTicker(censusEvery)
	defer ticker.Stop()
	failing := false
	for {
		limited, cancel := context.WithTimeout(ctx, censusTimeout)
		err := store.Census(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("the census of intents fails, trying again every 15 seconds", "error", err)
		case err == nil && failing:
			log.Info("the census of intents works again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
