// Package background repeats the jobs that core does besides serving requests.
package background

import (
	"context"
	"log/slog"
	"time"
)

// Job says what is repeated and when.
type Job struct {
	// Name is the job's in the log.
	Name string
	// Every is the interval between two runs.
	Every time.Duration
	// Wake starts a run before its time; nil for never. It starts none after a failure.
	Wake <-chan struct{}
	// Level is that of the log line about the first of several failures.
	Level slog.Level
}

// Repeat calls run at once and then at each interval, or whenever it is woken, until ctx ends; without a pause while run returns more.
// It logs the first of several failures and the success after them.
func Repeat(ctx context.Context, log *slog.Logger, job Job, run func() (more bool, err error)) {
	ticker := time.NewTicker(job.Every)
	defer ticker.Stop()
	failing := false
	for {
		more, err := run()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.LogAttrs(ctx, job.Level, "background job fails",
				slog.String("job", job.Name), slog.String("retry_every", job.Every.String()), slog.Any("error", err))
		case err == nil && failing:
			log.LogAttrs(ctx, slog.LevelInfo, "background job succeeds again", slog.String("job", job.Name))
		}
		failing = err != nil
		if more {
			continue
		}
		wake := job.Wake
		if failing {
			wake = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-ticker.C:
		}
	}
}
