package keys

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/telemetry"
)

const (
	// filterAge is how long a filter is used: keys deleted since remain in it.
	filterAge = time.Hour
	// filterTimeout bounds the loading of one, filterRetry is the pause after a failure.
	filterTimeout = time.Minute
	filterRetry   = 2 * time.Second
)

// filterLoader loads filters beside the feed, which must not wait for them.
type filterLoader struct {
	// requested asks for a filter at once.
	requested chan struct{}
	// loaded passes a filter to the goroutine that follows the feed.
	loaded chan loadedFilter
}

// loadedFilter holds every key that existed at the cursor.
type loadedFilter struct {
	filter *apikey.Filter
	cursor string
	// adopted tells the loader what became of it.
	adopted chan error
}

func newFilterLoader() filterLoader {
	return filterLoader{requested: make(chan struct{}, 1), loaded: make(chan loadedFilter, 1)}
}

func (l *filterLoader) request() {
	select {
	case l.requested <- struct{}{}:
	default: // one is requested already
	}
}

// loadFilters loads a filter when it is requested, and another one every filterAge, until ctx ends.
func (v *Verifier) loadFilters(ctx context.Context) {
	next, failing, logs := filterAge, false, telemetry.Sampler{Every: logEvery}
	for {
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-v.filters.requested:
		case <-ctx.Done():
			return
		}
		timer.Stop()
		err := v.loadFilter(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			next = filterAge + rand.N(filterAge/4) //nolint:gosec // only so that not all replicas ask at once
			if failing {
				v.log.InfoContext(ctx, "filter of existing keys loaded again")
			}
		} else {
			next = filterRetry
			v.metrics.filtersFailed.Inc()
			if suppressed, due := logs.Due(); due {
				v.log.WarnContext(ctx, "filter of existing keys not loaded, unknown keys are looked up meanwhile", "error", err, "suppressed", suppressed)
			}
		}
		failing = err != nil
	}
}

// loadFilter gets a filter from core and waits until it is adopted.
func (v *Verifier) loadFilter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, filterTimeout)
	defer cancel()
	filter, cursor, err := v.core.KeyFilter(ctx)
	if err != nil {
		return err
	}
	adopted := make(chan error, 1)
	select {
	case v.filters.loaded <- loadedFilter{filter, cursor, adopted}:
	case <-ctx.Done():
		return errors.New("the key change feed does not answer")
	}
	v.readings.await(v.lookUpTimeout) // so that the long poll under way ends now
	select {
	case err := <-adopted:
		return err
	case <-ctx.Done():
		return errors.New("the key change feed does not answer")
	}
}

// adoptFilter puts a filter that was loaded, if any, in the place of the present one, with the keys that changed since it
// was made. Only the goroutine that follows the feed applies changes, so none is missed in between.
func (v *Verifier) adoptFilter(ctx context.Context, f *feed) {
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
	f.wait = 0 // the next poll is due already
	loaded.adopted <- err
}

func addTo(filter *apikey.Filter, hashes []apikey.Hash) {
	for _, hash := range hashes {
		filter.Add(hash)
	}
}
