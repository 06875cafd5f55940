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
)

const (
	// pollWait is how long core may hold a poll open at most.
	pollWait = 250 * time.Millisecond
	// pollReserve is what a poll may take longer than the one before.
	pollReserve = 100 * time.Millisecond
	// pollTimeout ends a poll that could prove nothing any more. After failures it is doubled up to longestPoll: the
	// changes of an outage may take longer to tell, and until they are told nothing can be proved.
	pollTimeout = Trust - pollWait
	longestPoll = 10 * time.Second
	// retryAfter is the pause after a failed poll.
	retryAfter = 50 * time.Millisecond
)

// Run follows core's change feed, and keeps the filter of the keys there are, until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	var filtering sync.WaitGroup
	filtering.Go(func() { v.followFilter(ctx) })
	defer filtering.Wait()
	var cursor string
	failing, patience, wait := false, pollTimeout, pollWait
	for ctx.Err() == nil {
		began := time.Now()
		next, err := v.poll(ctx, cursor, wait, patience)
		if err == nil {
			cursor, patience, wait = next, pollTimeout, nextWait(wait, time.Since(began))
		} else {
			patience, wait = min(2*patience, longestPoll), 0 // verdicts count again from the first answer on
		}
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failing {
			failing = err != nil
			v.report(ctx, err)
		}
		if err != nil {
			v.metrics.pollsFailed.Inc()
			pause(ctx, retryAfter)
		}
	}
}

// nextWait is how long core may hold a poll open, after one for which it was to wait so long and which took so long in all.
// Proof counts from a poll's start and is to last until the next one's end: both have to fit into Trust, the way to a core
// that is far or slow included.
func nextWait(waited, took time.Duration) time.Duration {
	way := max(0, took-waited)
	return min(pollWait, max(0, Trust/2-pollReserve-way))
}

// poll asks for the changes since cursor, drops what they touch and gives the next cursor. Core may wait for changes.
func (v *Verifier) poll(ctx context.Context, cursor string, wait, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := v.now()
	changes, err := v.core.KeyChanges(ctx, cursor, wait)
	if errors.Is(err, control.ErrCursorExpired) && cursor != "" {
		v.dropAll()
		v.metrics.purges.Inc()
		return "", nil // the poll without a cursor that follows proves
	}
	if err != nil {
		return "", err
	}
	hashes, err := decode(changes.Hashes)
	if err != nil {
		return "", err
	}
	if cursor == "" {
		// A verdict from before this cursor could have changed before it, too, and nobody would tell.
		v.dropAll()
		v.filter.miss()
	} else {
		v.drop(hashes)
		v.metrics.changes.Add(float64(len(hashes)))
	}
	v.proven.Store(int64(began))
	return changes.Cursor, nil
}

func decode(texts []string) ([]apikey.Hash, error) {
	hashes := make([]apikey.Hash, len(texts))
	for i, text := range texts {
		if len(text) != hex.EncodedLen(len(hashes[i])) {
			return nil, fmt.Errorf("key change feed: a hash has %d characters", len(text))
		}
		if _, err := hex.Decode(hashes[i][:], []byte(text)); err != nil {
			return nil, fmt.Errorf("key change feed: %w", err)
		}
	}
	return hashes, nil
}

// report logs the first failure of a row and its end, not every poll between.
func (v *Verifier) report(ctx context.Context, err error) {
	if err != nil {
		v.log.WarnContext(ctx, "key change feed interrupted, verdicts are asked for again", "error", err)
		return
	}
	v.log.InfoContext(ctx, "key change feed resumed")
}

// Ready is nil once the change feed has been followed; it is a readiness check. A feed that breaks off later does not
// fail it: verdicts are then asked for one by one.
func (v *Verifier) Ready(context.Context) error {
	if v.proven.Load() < 0 {
		return errors.New("core's key change feed has not been followed yet")
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
