// Package keys turns the hash of a presented API key into a verdict: whose key it is and what it may do, or that it may
// do nothing.
//
// Verdicts are cached for minutes. A key that was revoked, disabled, deleted or has expired is refused within
// MaxStaleness on every replica: a cached verdict counts only while it, or the last poll of core's key change feed, is
// younger than that. An older one is looked up again, and where core does not answer the request is refused.
//
// Keys that do not exist cost core nothing. A filter holds every key that exists; a key that it lacks waits for the next
// reading of the feed, which all waiting requests share, and is then in the filter and looked up, or refused for good.
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
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
)

// MaxStaleness bounds the age of a verdict's proof: its own look-up or the last successful poll of the change feed.
const MaxStaleness = time.Second

var (
	// ErrUnknown says that no key has this hash.
	ErrUnknown = errors.New("no key has this hash")
	// ErrRefused says that core refuses the key: it is unknown, disabled, expired, or its account is gone.
	ErrRefused = errors.New("core refuses the key")
	// ErrUnavailable says that core did not answer and that no fresh verdict is cached.
	ErrUnavailable = errors.New("keys cannot be verified now")
	// ErrNotCached says that the cache alone cannot tell.
	ErrNotCached = errors.New("no fresh verdict is cached")

	errStale = fmt.Errorf("the cached verdict is stale: %w", ErrNotCached)
)

// Options are the verifier's settings; all must be set.
type Options struct {
	Core *control.Client
	// Capacity bounds the cached verdicts; one takes about 350 bytes.
	Capacity int
	// TTL is how long a verdict is cached; it bounds what a fault of the change feed's bookkeeping could do.
	TTL time.Duration
	// UnknownTTL is how long a refusal is cached.
	UnknownTTL time.Duration
	// LookUpTimeout bounds the wait for a reading of the feed, and then one look-up at core. An answer that takes longer
	// than MaxStaleness is too old.
	LookUpTimeout time.Duration
	// LookUps bounds the concurrent look-ups.
	LookUps int
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Verifier is safe for concurrent use. Run must be running for cached verdicts and the filter to count.
type Verifier struct {
	core          *control.Client
	lookUpTimeout time.Duration
	// slots bounds the look-ups; unlisted those of keys that a filter without its latest changes lacks, so that a flood of
	// unknown keys leaves most slots to keys that exist.
	slots, unlisted chan struct{}

	verdicts *otter.Cache[apikey.Hash, *Verdict]
	refusals *otter.Cache[apikey.Hash, refusal]
	// syncedAt is the time, in nanoseconds since start, up to which every key change is known.
	syncedAt atomic.Int64
	start    time.Time

	// filter holds every key that existed at the feed's position, nil before the first one is loaded.
	filter   atomic.Pointer[apikey.Filter]
	filters  filterLoader
	readings readings

	// mu makes storing a look-up's answer and invalidating a changed key exclude each other.
	mu      sync.Mutex
	lookUps map[apikey.Hash]*lookUp

	log        *slog.Logger
	lookUpLogs telemetry.Sampler
	metrics    metrics
}

// refusal is that of a key, by ErrUnknown or ErrRefused.
type refusal struct{ cause error }

const (
	// refusalCapacity bounds the cached refusals; one takes about 160 bytes.
	refusalCapacity = 100_000
	// unlistedShare is the share of the slots that unlisted keys may take: one in so many.
	unlistedShare = 4
	// logEvery is the least time between two log lines about the same failing call.
	logEvery = 5 * time.Second
)

// New makes a verifier whose caches are empty.
func New(o Options) *Verifier {
	v := &Verifier{
		core:          o.Core,
		lookUpTimeout: o.LookUpTimeout,
		slots:         make(chan struct{}, o.LookUps),
		unlisted:      make(chan struct{}, max(1, o.LookUps/unlistedShare)),
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
	}
	v.syncedAt.Store(int64(-MaxStaleness)) // the feed has not been read yet
	v.metrics = newMetrics(o.Metrics, v, o.Capacity)
	return v
}

// Close ends the caches' housekeeping. The verifier must not be in use any more.
func (v *Verifier) Close() {
	v.verdicts.StopAllGoroutines()
	v.refusals.StopAllGoroutines()
}

// Lookup gives the cached verdict on the key with this hash. Its errors are ErrUnknown and ErrRefused, and ErrNotCached
// where Verify must be called. It reads no clock but the time it is given.
func (v *Verifier) Lookup(hash apikey.Hash, at time.Time) (*Verdict, error) {
	verdict, err := v.cached(hash, at.Sub(v.start))
	if !errors.Is(err, ErrNotCached) {
		v.countCached(err)
	}
	return verdict, err
}

// Verify gives the verdict on the key with this hash, from the cache or from core. Its errors are ErrUnknown, ErrRefused
// and ErrUnavailable.
func (v *Verifier) Verify(hash apikey.Hash) (*Verdict, error) {
	return v.VerifyIn(tracing.Noop, hash)
}

// VerifyIn is Verify for a request with a span, below which it shows its wait for core.
func (v *Verifier) VerifyIn(span trace.Span, hash apikey.Hash) (*Verdict, error) {
	verdict, err := v.cached(hash, v.now())
	switch {
	case errors.Is(err, errStale):
		v.metrics.rechecks.Inc()
		return v.lookUp(span, hash, v.slots)
	case errors.Is(err, ErrNotCached):
		return v.verifyNew(span, hash)
	default:
		v.countCached(err)
		return verdict, err
	}
}

// cached gives what the caches hold, else errStale or ErrNotCached.
func (v *Verifier) cached(hash apikey.Hash, now time.Duration) (*Verdict, error) {
	verdict, cached := v.verdicts.GetIfPresent(hash)
	if cached && !verdict.expired(now) && v.fresh(verdict, now) {
		return verdict, nil
	}
	if refused, held := v.refusals.GetIfPresent(hash); held {
		return nil, refused.cause
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

// feedLag is the time since every key change was last known.
func (v *Verifier) feedLag(now time.Duration) time.Duration {
	return now - time.Duration(v.syncedAt.Load())
}

// now is the time since the verifier's start, by the monotonic clock.
func (v *Verifier) now() time.Duration { return time.Since(v.start) }

// verifyNew judges a key that nothing is cached of.
func (v *Verifier) verifyNew(span trace.Span, hash apikey.Hash) (*Verdict, error) {
	slots := v.slots
	if !v.listed(hash) {
		err := v.awaitReading()
		switch {
		case errors.Is(err, errFilterIncomplete):
			slots = v.unlisted
		case err != nil:
			v.metrics.unread.Inc()
			return nil, ErrUnavailable
		case !v.listed(hash):
			v.metrics.filtered.Inc()
			return nil, v.refuseUnknown(hash)
		}
	}
	v.metrics.misses.Inc()
	return v.lookUp(span, hash, slots)
}

// listed reports whether the key is in the filter; without a filter every key may exist.
func (v *Verifier) listed(hash apikey.Hash) bool {
	filter := v.filter.Load()
	return filter == nil || filter.Has(hash)
}

// refuseUnknown caches that the key is unknown, unless the feed has told of it meanwhile: a new key is first added to the
// filter, and then its refusal is dropped.
func (v *Verifier) refuseUnknown(hash apikey.Hash) error {
	v.refusals.Set(hash, refusal{ErrUnknown})
	if v.listed(hash) {
		v.refusals.Invalidate(hash)
	}
	return ErrUnknown
}
