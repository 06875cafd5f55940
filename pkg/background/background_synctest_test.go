package background_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/background"
)

// When each run of a job is, and what it reports: after a failure the next run is after Retry, and nothing wakes it before.
func TestRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		var got []string
		wake := make(chan struct{}, 1)
		results := []struct {
			more, wakes bool
			err         error
		}{{more: true}, {wakes: true}, {}, {err: errors.New("down"), wakes: true}, {err: errors.New("still down")}, {}, {}}
		job := background.Job{Every: 10 * time.Second, Retry: time.Second, Wake: wake, Report: func(_ context.Context, err error) {
			got = append(got, fmt.Sprint("reported ", err))
		}}
		background.Repeat(ctx, slog.New(slog.DiscardHandler), job, func() (bool, error) {
			got = append(got, fmt.Sprint("run at ", time.Since(began)))
			result := results[0]
			if results = results[1:]; len(results) == 0 {
				stop()
			}
			if result.wakes {
				wake <- struct{}{}
			}
			return result.more, result.err
		})
		want := []string{
			"run at 0s", "run at 0s", "run at 0s", "run at 10s", "reported down", "run at 11s", "reported still down", "run at 12s", "reported <nil>",
			"run at 12s", // woken while it failed
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("runs and reports (-want +got):\n%s", diff)
		}
	})
}
