// Package keys turns the hash of a presented API key into a verdict: whose key it is and what it may do, or that it may
// do nothing.
//
// Verdicts are cached for minutes. The promise is that a key that was revoked, disabled, deleted or has expired is
// refused within Trust (one second) on every replica: a verdict counts only while it, or the last poll of core's change
// feed, is younger than that. Older ones are asked for again, and where core cannot answer nobody gets in on an old one.
package keys

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/control"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/tracing"
)

// Trust is how old the proof of a verdict may be: its own look-up or the last good poll of the change feed.
const Trust = time.Second

var (
	// ErrRefused says that no request may be made with the key.
	ErrRefused = errors.New("the key is not usable")
	// ErrUnavailable says that core could not be asked and no trusted verdict is at hand.
	ErrUnavailable = errors.New("keys cannot be verified now")
)

// BudgetError says that the client's address has presented too many unknown keys to have another looked up.
type BudgetError struct{ limit.Decision }

func (e BudgetError) Error() string {
	return fmt.Sprintf("too many unknown keys from this address, next look-up in %s", e.RetryAfter)
}

// Options are the verifier's settings; all must be set.
type Options struct {
	Core    *control.Client
	Limiter *limit.Limiter
	// Capacity bounds the verdicts held; one takes about 350 bytes.
	Capacity int
	// TTL is how long a verdict is kept; it bounds what a fault of the change feed's bookkeeping could do.
	TTL time.Duration
	// UnknownTTL is how long core's "no such key" is kept.
	UnknownTTL time.Duration
	// UnknownPerMinute is how many unknown keys one client address may have looked up in a minute.
	UnknownPerMinute int
	// UnknownPerSecond is how many all addresses together may have looked up in a second; 0 for no bound.
	UnknownPerSecond int
	// LookUpTimeout bounds one look-up at core. More than Trust would let an answer grow too old on its way.
	LookUpTimeout time.Duration
	// LookUps bounds the look-ups under way at once.
	LookUps int
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Verifier is safe for concurrent use. Run must be running for cached verdicts to count.
type Verifier struct {
	core          *control.Client
	lookUpTimeout time.Duration
	slots         chan struct{}
	lanes         *lanes
	// strangers bounds the unknown keys that are looked up, mistaken those that the filter has by mistake.
	strangers, mistaken *strangers
	filter              filter
	limiter             *limit.Limiter
	unknownRule         atomic.Pointer[redis_rate.Limit]

	verdicts *otter.Cache[apikey.Hash, *Verdict]
	unknown  *otter.Cache[apikey.Hash, struct{}]
	// proven is a time, in nanoseconds since start, up to which every change is known.
	proven atomic.Int64
	start  time.Time

	// mu makes storing a look-up's answer and dropping a changed key exclude each other.
	mu      sync.Mutex
	lookUps map[apikey.Hash]*lookUp

	log     *slog.Logger
	metrics metrics
}

// unknownCapacity bounds the unknown keys remembered; one takes about 150 bytes.
const unknownCapacity = 100_000

// lanesPerBudget is how many replicas can have all the look-ups under way that one address may have, without good keys
// being refused because the address's budget is reserved for others of its own.
const lanesPerBudget = 4

// New makes a verifier whose caches are empty.
func New(o Options) *Verifier {
	v := &Verifier{
		core:          o.Core,
		lookUpTimeout: o.LookUpTimeout,
		slots:         make(chan struct{}, o.LookUps),
		lanes:         newLanes(1),
		strangers:     newStrangers(o.UnknownPerSecond),
		mistaken:      newStrangers(o.UnknownPerSecond),
		filter:        filter{missed: make(chan struct{}, 1)},
		limiter:       o.Limiter,
		verdicts: otter.Must(&otter.Options[apikey.Hash, *Verdict]{
			MaximumSize:      o.Capacity,
			ExpiryCalculator: otter.ExpiryWriting[apikey.Hash, *Verdict](o.TTL),
		}),
		unknown: otter.Must(&otter.Options[apikey.Hash, struct{}]{
			MaximumSize:      unknownCapacity,
			ExpiryCalculator: otter.ExpiryWriting[apikey.Hash, struct{}](o.UnknownTTL),
		}),
		start:   time.Now(),
		lookUps: map[apikey.Hash]*lookUp{},
		log:     o.Log,
	}
	v.SetUnknown(o.UnknownPerMinute, o.UnknownPerSecond)
	v.proven.Store(int64(-Trust)) // nothing is proven yet
	v.metrics = newMetrics(o.Metrics, v, o.Capacity)
	return v
}

// SetUnknown changes how many unknown keys one address may have looked up in a minute, and all together in a second (0 for
// no bound).
func (v *Verifier) SetUnknown(perMinute, perSecond int) {
	rule := redis_rate.PerMinute(perMinute)
	v.unknownRule.Store(&rule)
	v.lanes.widen(max(1, perMinute/lanesPerBudget))
	v.strangers.bound(perSecond)
	v.mistaken.bound(perSecond)
}

// Close ends the caches' housekeeping. The verifier must not be in use any more.
func (v *Verifier) Close() {
	v.verdicts.StopAllGoroutines()
	v.unknown.StopAllGoroutines()
}

// Recall gives the verdict on the key with this hash where core need not be asked, which known says; nil is the verdict on
// a key that is not usable. It looks at no clock but the time it is given.
func (v *Verifier) Recall(hash apikey.Hash, at time.Time) (verdict *Verdict, known bool) {
	verdict, what := v.recall(hash, at.Sub(v.start))
	switch what {
	case usable:
		v.metrics.hits.Inc()
		return verdict, true
	case unusable:
		v.metrics.unknownHits.Inc()
		return nil, true
	default:
		return nil, false
	}
}

// Verify gives the verdict on the key with this hash, presented from this address. Its errors are ErrRefused,
// ErrUnavailable and BudgetError.
func (v *Verifier) Verify(hash apikey.Hash, client netip.Addr) (*Verdict, error) {
	return v.VerifyIn(tracing.Span{}, hash, client)
}

// VerifyIn is Verify for a request with a span, below which it shows where core is asked.
func (v *Verifier) VerifyIn(span tracing.Span, hash apikey.Hash, client netip.Addr) (*Verdict, error) {
	verdict, known := v.recall(hash, v.now())
	switch known {
	case usable:
		v.metrics.hits.Inc()
		return verdict, nil
	case unusable:
		v.metrics.unknownHits.Inc()
		return nil, ErrRefused
	case outdated:
		v.metrics.rechecks.Inc()
		return v.ask(span, hash, "")
	default:
		v.metrics.misses.Inc()
		verdict, err := v.askForStranger(span, hash, client)
		if _, over := errors.AsType[BudgetError](err); over {
			v.metrics.overBudget.Inc()
		}
		return verdict, err
	}
}

// memory is what the caches know of a key.
type memory int

const (
	nothing memory = iota
	// outdated is a verdict that counted once.
	outdated
	usable
	unusable
)

// recall looks into the caches; the verdict is there where the key is usable.
func (v *Verifier) recall(hash apikey.Hash, now time.Duration) (*Verdict, memory) {
	verdict, cached := v.verdicts.GetIfPresent(hash)
	if cached && !verdict.expired(now) && v.trusted(verdict, now) {
		return verdict, usable
	}
	if _, unknown := v.unknown.GetIfPresent(hash); unknown {
		return nil, unusable
	}
	if cached {
		return nil, outdated
	}
	return nil, nothing
}

func (v *Verifier) trusted(verdict *Verdict, now time.Duration) bool {
	return now-verdict.asked < Trust || v.age(now) < Trust
}

// age is how long ago it was last sure that every change of a key was known.
func (v *Verifier) age(now time.Duration) time.Duration { return now - time.Duration(v.proven.Load()) }

// now is the time since the verifier's start, by the monotonic clock.
func (v *Verifier) now() time.Duration { return time.Since(v.start) }

// askForStranger looks up a key that no verdict is held for, on the budget of the client's address: a token is reserved
// before core is asked, so that no rush of unknown keys can load core beyond the budget. It is given back unless the key
// turns out unknown, since many clients with good keys may share one address.
func (v *Verifier) askForStranger(span tracing.Span, hash apikey.Hash, client netip.Addr) (*Verdict, error) {
	bucket := neighbourhood(client)
	if d, held := v.limiter.Refused(bucket, *v.unknownRule.Load()); held {
		return nil, BudgetError{d}
	}
	return v.ask(span, hash, bucket)
}

// neighbourhood is the bucket of what shares one budget: an IPv4 address, or the /64 that one IPv6 client commonly has to
// itself.
func neighbourhood(client netip.Addr) string {
	var space [64]byte
	bucket := append(space[:0], "unknown-keys:"...)
	if client.Is6() && !client.Is4In6() {
		return string(netip.PrefixFrom(client.WithZone(""), 64).Masked().AppendTo(bucket))
	}
	return string(client.Unmap().AppendTo(bucket))
}
