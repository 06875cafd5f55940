// Package background repeats the jobs that a service does besides serving requests.
package background

import (
	"cmp"
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
	// Retry is the pause after a failure; 0 for Every.
	Retry time.Duration
	// Wake starts a run before its time; nil for never. It starts none after a failure.
	Wake <-chan struct{}
	// Level is that of the log line about the first of several failures.
	Level slog.Level
	// Report logs each failure, and with a nil error the success after them, in place of Repeat; nil for Repeat's own lines.
	Report func(ctx context.Context, err error)
}

// Repeat calls run at once and then at each interval, or whenever it is woken, until ctx ends; without a pause while run returns more.
// Unless the job reports for itself, it logs the first of several failures and the success after them.
func Repeat(ctx context.Context, log *slog.Logger, job Job, run func() (more bool, err error)) {
	ticker := time.NewTicker(job.Every)
	defer ticker.Stop()
	for failing := false; ; {
		more, err := run()
		if ctx.Err() != nil {
			return
		}
		job.report(ctx, log, err, failing)
		failing = err != nil
		switch {
		case more:
		case failing && job.Retry > 0:
			wait(ctx, time.After(job.Retry), nil)
		case failing:
			wait(ctx, ticker.C, nil)
		default:
			wait(ctx, ticker.C, job.Wake)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func wait(ctx context.Context, due <-chan time.Time, wake <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-due:
	case <-wake:
	}
}

// report logs the result of a run after one that failed or not.
func (j *Job) report(ctx context.Context, log *slog.Logger, err error, wasFailing bool) {
	switch {
	case err == nil && !wasFailing:
	case j.Report != nil:
		j.Report(ctx, err)
	case err == nil:
		log.LogAttrs(ctx, slog.LevelInfo, "background job succeeds again", slog.String("job", j.Name))
	case !wasFailing:
		log.LogAttrs(ctx, j.Level, "background job fails",
			slog.String("job", j.Name), slog.String("retry_every", cmp.Or(j.Retry, j.Every).String()), slog.Any("error", err))
	}
}
