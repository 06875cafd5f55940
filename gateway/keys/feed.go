package keys

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/background"
)

const (
	// pollWait is the longest time that core may hold a poll open.
	pollWait = 250 * time.Millisecond
	// pollMargin is how much longer a poll may take than the one before.
	pollMargin = 100 * time.Millisecond
	// pollTimeout ends a poll whose response would be stale. It doubles with each failure up to maxPollTimeout: the changes of an
	// outage may take longer to transfer, and no cached verdict is fresh until then.
	pollTimeout    = MaxStaleness - pollWait
	maxPollTimeout = 10 * time.Second
	// pollRetry is the pause after a failed poll.
	pollRetry = 50 * time.Millisecond
)

// feed is the state of the goroutine that polls core's change feed.
type feed struct {
	// cursor is the position up to which changes were applied, empty before the first poll and after a gap.
	cursor string
	// filterComplete says that the filter holds all keys that existed at the cursor.
	filterComplete bool
	// wait is how long core may hold the next poll open, timeout bounds the whole poll.
	wait, timeout time.Duration
}

// Run polls core's change feed and keeps the filter of existing keys current, until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	var loading sync.WaitGroup
	loading.Go(func() { v.loadFilters(ctx) })
	defer loading.Wait()
	f := feed{wait: pollWait, timeout: pollTimeout}
	job := background.Job{Every: pollRetry, Retry: pollRetry, Report: v.reportFeed}
	background.Repeat(ctx, v.log, job, func() (more bool, err error) {
		err = v.pollOnce(ctx, &f)
		for errors.Is(err, errPollCanceled) {
			err = v.pollOnce(ctx, &f)
		}
		v.swapFilter(ctx, &f)
		return err == nil, err
	})
}

// errPollCanceled means that a request waits for the next poll, which says nothing of the feed.
var errPollCanceled = errors.New("the poll was canceled by a request that waits for the next")

// pollOnce polls the feed once. Core responds at once if requests wait for the poll, otherwise when a key changes or f.wait is
// over. A request that starts to wait meanwhile cancels the poll.
func (v *Verifier) pollOnce(ctx context.Context, f *feed) error {
	polling, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	shared := v.polls.begin(cancel)
	if shared != nil {
		f.wait = 0
	}
	began := time.Now()
	err := v.poll(polling, f)
	if shared != nil {
		shared.finish(err, f.filterComplete)
	}
	switch {
	case err == nil:
		f.timeout, f.wait = pollTimeout, nextWait(f.wait, time.Since(began))
	case ctx.Err() != nil:
	case shared == nil && errors.Is(polling.Err(), context.Canceled):
		return errPollCanceled
	default:
		v.metrics.pollsFailed.Inc()
		f.timeout, f.wait = min(2*f.timeout, maxPollTimeout), 0 // the first response makes verdicts fresh again
	}
	return err
}

// nextWait returns how long core may hold the next poll open, from the wait and the duration of the last poll. Freshness counts
// from a poll's start and must last until the next poll's end, so two polls with their round trips must fit into MaxStaleness.
func nextWait(waited, took time.Duration) time.Duration {
	roundTrip := max(0, took-waited)
	return min(pollWait, max(0, MaxStaleness/2-pollMargin-roundTrip))
}

// poll requests the changes since the cursor, applies them and moves the cursor.
func (v *Verifier) poll(ctx context.Context, f *feed) error {
	began := v.now()
	changes, hashes, err := v.changesSince(ctx, f.cursor, f.wait)
	if errors.Is(err, control.ErrCursorExpired) && f.cursor != "" {
		v.invalidateAll()
		v.metrics.purges.Inc()
		f.cursor, f.filterComplete = "", false
		return nil // the next poll, without a cursor, sets syncedAt
	}
	if err != nil {
		return err
	}
	if f.cursor == "" {
		// A verdict or filter that is older than this cursor may lack a change before the cursor.
		v.invalidateAll()
		f.filterComplete = false
		v.filters.request()
	} else {
		v.invalidate(hashes)
		v.metrics.changes.Add(float64(len(hashes)))
	}
	f.cursor = changes
	v.syncedAt.Store(int64(began))
	return nil
}

// changesSince returns the keys that changed since the cursor, and the next cursor.
func (v *Verifier) changesSince(ctx context.Context, cursor string, wait time.Duration) (next string, hashes []apikey.Hash, err error) {
	changes, err := v.core.KeyChanges(ctx, cursor, wait)
	if err != nil {
		return "", nil, err
	}
	hashes = make([]apikey.Hash, len(changes.Hashes))
	for i, text := range changes.Hashes {
		if len(text) != hex.EncodedLen(len(hashes[i])) {
			return "", nil, fmt.Errorf("key change feed: a hash has %d characters", len(text))
		}
		if _, err := hex.Decode(hashes[i][:], []byte(text)); err != nil {
			return "", nil, fmt.Errorf("key change feed: hash %d of %d is not hexadecimal", i+1, len(hashes))
		}
	}
	return changes.Cursor, hashes, nil
}

// reportFeed logs the first of consecutive failed polls, then one every logEvery, and the recovery.
func (v *Verifier) reportFeed(ctx context.Context, err error) {
	if err == nil {
		v.log.InfoContext(ctx, "key change feed resumed")
	} else if suppressed, due := v.feedLogs.Due(); due {
		v.log.WarnContext(ctx, "key change feed interrupted, cached verdicts are looked up again", "error", err, "suppressed", suppressed)
	}
}

// Ready is a readiness check that passes from the first successful poll on. It does not fail if the feed fails later: stale
// verdicts are looked up one by one.
func (v *Verifier) Ready(context.Context) error {
	if v.syncedAt.Load() < 0 {
		return errors.New("core's key change feed has not been read yet")
	}
	return nil
}
