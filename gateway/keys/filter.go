package keys

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/background"
)

const (
	// filterMaxAge is how long a filter is used: deleted keys stay in it until then.
	filterMaxAge = time.Hour
	// filterTimeout bounds one load, filterRetry is the pause after a failed one.
	filterTimeout = time.Minute
	filterRetry   = 2 * time.Second
)

// filterLoader loads filters in its own goroutine, because the polls of the feed must not wait for them.
type filterLoader struct {
	// requested triggers a load.
	requested chan struct{}
	// loaded passes a filter to the goroutine that polls the feed.
	loaded chan loadedFilter
}

// loadedFilter holds every key that existed at the cursor.
type loadedFilter struct {
	filter *apikey.Filter
	cursor string
	// result receives the error of swapFilter.
	result chan error
}

func newFilterLoader() filterLoader {
	return filterLoader{requested: make(chan struct{}, 1), loaded: make(chan loadedFilter, 1)}
}

func (l *filterLoader) request() {
	select {
	case l.requested <- struct{}{}:
	default: // a load is requested already
	}
}

// loadFilters loads a filter when one is requested, as the first poll of the feed does, and every filterMaxAge, until ctx ends.
func (v *Verifier) loadFilters(ctx context.Context) {
	select {
	case <-v.filters.requested:
	case <-ctx.Done():
		return
	}
	spread := rand.N(filterMaxAge / 4) //nolint:gosec // spreads the loads of many replicas
	job := background.Job{Every: filterMaxAge + spread, Retry: filterRetry, Wake: v.filters.requested, Report: v.reportFilter}
	background.Repeat(ctx, v.log, job, func() (more bool, err error) {
		if err = v.loadFilter(ctx); err != nil && ctx.Err() == nil {
			v.metrics.filtersFailed.Inc()
		}
		return false, err
	})
}

// reportFilter logs the first of consecutive failed loads, then one every logEvery, and the recovery.
func (v *Verifier) reportFilter(ctx context.Context, err error) {
	if err == nil {
		v.log.InfoContext(ctx, "filter of existing keys reloaded")
	} else if suppressed, due := v.filterLogs.Due(); due {
		v.log.WarnContext(ctx, "filter of existing keys not loaded, unknown keys are looked up meanwhile", "error", err, "suppressed", suppressed)
	}
}

// loadFilter gets a filter from core, brings it up to date, and waits until swapFilter has put it in use.
func (v *Verifier) loadFilter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, filterTimeout)
	defer cancel()
	filter, cursor, err := v.core.KeyFilter(ctx)
	if err != nil {
		return err
	}
	// Many keys may have changed since core made the filter. The polls do not wait for them, else cached verdicts would be stale.
	cursor, hashes, err := v.changesSince(ctx, cursor, 0)
	if err != nil {
		return err
	}
	addTo(filter, hashes)
	result := make(chan error, 1)
	select {
	case v.filters.loaded <- loadedFilter{filter, cursor, result}:
	case <-ctx.Done():
		return errors.New("the key change feed does not answer")
	}
	v.polls.request(v.lookUpTimeout) // which ends the long poll
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return errors.New("the key change feed does not answer")
	}
}

// swapFilter replaces the filter by a loaded one, if any, with the keys that changed since its cursor. It misses no change,
// because only this goroutine applies changes.
func (v *Verifier) swapFilter(ctx context.Context, f *feed) {
	if f.cursor == "" {
		return // the feed has no position yet
	}
	var loaded loadedFilter
	select {
	case loaded = <-v.filters.loaded:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	_, hashes, err := v.changesSince(ctx, loaded.cursor, 0)
	if err == nil {
		addTo(loaded.filter, hashes)
		v.filter.Store(loaded.filter)
		f.filterComplete = true
	}
	f.wait = 0 // the next poll is overdue
	loaded.result <- err
}

func addTo(filter *apikey.Filter, hashes []apikey.Hash) {
	for _, hash := range hashes {
		filter.Add(hash)
	}
}
