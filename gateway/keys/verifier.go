// Package keys turns the hash of an API key into a verdict (the key's account, environment and limit) or a rejection.
//
// Verdicts are cached for minutes. A key that was revoked, disabled, deleted or has expired is rejected within MaxStaleness on
// every replica: a cached verdict is used only while its look-up, or the last poll of core's key change feed, is younger than
// that. A stale verdict is looked up again, and the request is rejected if core does not respond.
//
// Keys that do not exist cause no look-up at core. A Bloom filter holds every key that exists. A request with a key that is not
// in the filter waits for the next poll of the feed, which all such requests share. Then the key is looked up if the filter holds
// it, otherwise rejected.
package keys

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/telemetry"
)

// MaxStaleness bounds the age of a verdict, from its look-up or the last successful poll of the change feed.
const MaxStaleness = time.Second

var (
	// ErrUnknown means that no key has this hash.
	ErrUnknown = errors.New("no key has this hash")
	// ErrRefused means that core rejects the key: it is unknown, disabled, expired, or its account was deleted.
	ErrRefused = errors.New("core refuses the key")
	// ErrUnavailable means that core did not respond and that no fresh verdict is cached.
	ErrUnavailable = errors.New("keys cannot be verified now")
	// ErrNotCached means that the cache has no verdict on the key and Verify must be called.
	ErrNotCached = errors.New("no fresh verdict is cached")

	errStale = fmt.Errorf("the cached verdict is stale: %w", ErrNotCached)
)

// Options are the verifier's settings; all must be set.
type Options struct {
	Core *control.Client
	// Capacity bounds the cached verdicts; one takes about 360 bytes, and more if it has networks or origins:
	// 32 for each network, and 16 and its length for each origin.
	Capacity int
	// TTL is how long a verdict is cached; it bounds the effect of a change that the feed lost.
	TTL time.Duration
	// UnknownTTL is how long a refusal is cached.
	UnknownTTL time.Duration
	// LookUpTimeout bounds the wait for a poll of the feed, and then one look-up at core. A response that takes longer than
	// MaxStaleness is stale.
	LookUpTimeout time.Duration
	// LookUps bounds the concurrent look-ups.
	LookUps int
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Verifier is safe for concurrent use. Cached verdicts and the filter are used only while Run runs.
type Verifier struct {
	core          *control.Client
	lookUpTimeout time.Duration
	// slots bounds the look-ups, unknownKeySlots those of keys that are not in an incomplete filter: a flood of unknown keys
	// leaves most slots to existing keys.
	slots, unknownKeySlots chan struct{}

	verdicts *otter.Cache[apikey.Hash, *Verdict]
	refusals *otter.Cache[apikey.Hash, refusal]
	// syncedAt is the time, in nanoseconds since start, up to which all key changes are applied.
	syncedAt atomic.Int64
	start    time.Time

	// filter holds every key that existed at the feed's position, nil before the first filter is loaded.
	filter  atomic.Pointer[apikey.Filter]
	filters filterLoader
	polls   sharedPolls

	// mu prevents that a look-up's response is stored while its key is invalidated.
	mu      sync.Mutex
	lookUps map[apikey.Hash]*lookUp

	log                              *slog.Logger
	lookUpLogs, feedLogs, filterLogs telemetry.Sampler
	metrics                          metrics
}

// refusal is a cached ErrUnknown or ErrRefused.
type refusal struct{ cause error }

const (
	// refusalCapacity bounds the cached refusals; one takes about 160 bytes.
	refusalCapacity = 100_000
	// unknownKeyShare is the divisor of LookUps for unknownKeySlots.
	unknownKeyShare = 4
	// logEvery is the minimum time between two log lines about the same failing call.
	logEvery = 5 * time.Second
)

// New makes a verifier whose caches are empty.
func New(o Options) *Verifier {
	v := &Verifier{
		core:            o.Core,
		lookUpTimeout:   o.LookUpTimeout,
		slots:           make(chan struct{}, o.LookUps),
		unknownKeySlots: make(chan struct{}, max(1, o.LookUps/unknownKeyShare)),
		verdicts: otter.Must(&otter.Options[apikey.Hash, *Verdict]{
			MaximumSize:      o.Capacity,
			ExpiryCalculator: otter.ExpiryWriting[apikey.Hash, *Verdict](o.TTL),
		}),
		refusals: otter.Must(&otter.Options[apikey.Hash, refusal]{
			MaximumSize:      refusalCapacity,
			ExpiryCalculator: otter.ExpiryWriting[apikey.Hash, refusal](o.UnknownTTL),
		}),
		start:      time.Now(),
		filters:    newFilterLoader(),
		lookUps:    map[apikey.Hash]*lookUp{},
		log:        o.Log,
		lookUpLogs: telemetry.Sampler{Every: logEvery},
		feedLogs:   telemetry.Sampler{Every: logEvery},
		filterLogs: telemetry.Sampler{Every: logEvery},
	}
	v.syncedAt.Store(int64(-MaxStaleness)) // the feed has not been read yet
	v.metrics = newMetrics(o.Metrics, v, o.Capacity)
	return v
}

// Close stops the background work of the caches. The verifier must not be used after Close.
func (v *Verifier) Close() {
	v.verdicts.StopAllGoroutines()
	v.refusals.StopAllGoroutines()
}

// Lookup returns the cached verdict on the key with this hash at the time now. Its errors are ErrUnknown and ErrRefused, and
// ErrNotCached if Verify must be called.
func (v *Verifier) Lookup(hash apikey.Hash, now time.Time) (*Verdict, error) {
	verdict, err := v.cached(hash, now.Sub(v.start))
	if !errors.Is(err, ErrNotCached) {
		v.countCached(err)
	}
	return verdict, err
}

// Verify returns the verdict on the key with this hash, from the cache or from core. Its errors are ErrUnknown,
// ErrRefused and ErrUnavailable.
func (v *Verifier) Verify(hash apikey.Hash) (*Verdict, error) {
	verdict, err := v.cached(hash, v.now())
	switch {
	case errors.Is(err, errStale):
		v.metrics.rechecks.Inc()
		return v.lookUp(hash, v.slots)
	case errors.Is(err, ErrNotCached):
		return v.verifyNew(hash)
	default:
		v.countCached(err)
		return verdict, err
	}
}

// cached returns the cached verdict or rejection, else errStale or ErrNotCached.
func (v *Verifier) cached(hash apikey.Hash, now time.Duration) (*Verdict, error) {
	verdict, cached := v.verdicts.GetIfPresent(hash)
	if cached && !verdict.expired(now) && v.fresh(verdict, now) {
		return verdict, nil
	}
	if r, ok := v.refusals.GetIfPresent(hash); ok {
		return nil, r.cause
	}
	if cached {
		return nil, errStale
	}
	return nil, ErrNotCached
}

func (v *Verifier) countCached(err error) {
	if err == nil {
		v.metrics.hits.Inc()
		return
	}
	v.metrics.refusalHits.Inc()
}

func (v *Verifier) fresh(verdict *Verdict, now time.Duration) bool {
	return now-verdict.askedAt < MaxStaleness || v.feedLag(now) < MaxStaleness
}

// feedLag is the time since syncedAt.
func (v *Verifier) feedLag(now time.Duration) time.Duration {
	return now - time.Duration(v.syncedAt.Load())
}

// now is the time since the verifier's start, by the monotonic clock.
func (v *Verifier) now() time.Duration { return time.Since(v.start) }

// verifyNew verifies a key that is not cached.
func (v *Verifier) verifyNew(hash apikey.Hash) (*Verdict, error) {
	slots := v.slots
	if !v.inFilter(hash) {
		err := v.awaitPoll()
		switch {
		case errors.Is(err, errFilterIncomplete):
			slots = v.unknownKeySlots
		case err != nil:
			v.metrics.feedUnavailable.Inc()
			return nil, ErrUnavailable
		case !v.inFilter(hash):
			v.metrics.filtered.Inc()
			return nil, v.refuseUnknown(hash)
		}
	}
	v.metrics.misses.Inc()
	return v.lookUp(hash, slots)
}

// inFilter reports whether the key may exist. It is true for every key until a filter is loaded.
func (v *Verifier) inFilter(hash apikey.Hash) bool {
	filter := v.filter.Load()
	return filter == nil || filter.Has(hash)
}

// refuseUnknown caches that the key is unknown, unless the feed has reported the key meanwhile: the feed adds a new key to the
// filter before it invalidates the rejection.
func (v *Verifier) refuseUnknown(hash apikey.Hash) error {
	v.refusals.Set(hash, refusal{ErrUnknown})
	if v.inFilter(hash) {
		v.refusals.Invalidate(hash)
	}
	return ErrUnknown
}
