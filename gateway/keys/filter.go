package keys

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"intents.internal/pkg/apikey"
)

const (
	// filterAge is how long a filter is used: what was deleted since still is in it.
	filterAge = time.Hour
	// filterTimeout bounds the getting of one, filterRetry is the pause after that has failed.
	filterTimeout = time.Minute
	filterRetry   = 10 * time.Second
)

// filter is what is known of which keys there are. Keys that are not in it are nearly always made up: a flood of them leaves core
// to those that are, however new to this gateway. Nobody is refused for not being in it, as a key that was made a moment ago
// may not be, and without it all keys are the same.
type filter struct {
	current atomic.Pointer[apikey.Filter]
	// missed tells that the feed may have left keys out.
	missed chan struct{}
}

// has reports whether there is, or nearly always is, a key with this hash.
func (f *filter) has(hash apikey.Hash) bool {
	current := f.current.Load()
	return current != nil && current.Has(hash)
}

func (f *filter) add(hashes []apikey.Hash) {
	if current := f.current.Load(); current != nil {
		for _, hash := range hashes {
			current.Add(hash)
		}
	}
}

// miss has a filter got, now or anew.
func (f *filter) miss() {
	select {
	case f.missed <- struct{}{}:
	default:
	}
}

// followFilter gets a filter whenever the feed begins anew, and another one now and then, until ctx ends.
func (v *Verifier) followFilter(ctx context.Context) {
	next := filterAge
	for failing := false; ; {
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-v.filter.missed:
		case <-ctx.Done():
			return
		}
		timer.Stop()
		err := v.getFilter(ctx)
		if ctx.Err() != nil {
			return
		}
		next = filterAge + rand.N(filterAge/4) //nolint:gosec // only so that not all replicas ask at once
		if err != nil {
			next = filterRetry
			v.metrics.filtersFailed.Inc()
		}
		if (err != nil) != failing {
			failing = err != nil
			v.reportFilter(ctx, err)
		}
	}
}

// getFilter gets a filter and has it know what has changed since it was made: what the feed, which is followed, tells from now
// on is added to the new filter by that, and what it has told before is asked for once more.
func (v *Verifier) getFilter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, filterTimeout)
	defer cancel()
	filter, cursor, err := v.core.KeyFilter(ctx)
	if err != nil {
		return err
	}
	v.filter.current.Store(filter)
	changes, err := v.core.KeyChanges(ctx, cursor, 0)
	if err != nil {
		return err
	}
	hashes, err := decode(changes.Hashes)
	if err != nil {
		return err
	}
	v.filter.add(hashes)
	return nil
}

// reportFilter logs the first failure of a row and its end.
func (v *Verifier) reportFilter(ctx context.Context, err error) {
	if err != nil {
		v.log.WarnContext(ctx, "no filter of the keys there are: in a flood of unknown keys, new ones are crowded out with them", "error", err)
		return
	}
	v.log.InfoContext(ctx, "filter of the keys there are got again")
}
